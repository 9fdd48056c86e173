// Vercel AI SDK: `generateText` and `streamText` with a tool.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";

export async function make(protocol, url) {
  const options = { apiKey: "key", baseURL: `${url}/v1` };
  const provider =
    protocol === "messages" ? createAnthropic(options) : createOpenAI(options);

  function model(name) {
    if (protocol === "responses") return provider.responses(name);
    return protocol === "chat" ? provider.chat(name) : provider(name);
  }

  function call(prepared, out) {
    return {
      model: prepared.model,
      messages: prepared.messages,
      maxOutputTokens: 4096,
      stopWhen: stepCountIs(1000),
      providerOptions: { openai: { store: false } },
      tools: {
        [prepared.tool.name]: tool({
          description: prepared.tool.description,
          inputSchema: prepared.schema,
          execute: async ({ a, b }) => {
            out.calls.push([a, b]);
            return 1_000_000 + a + b;
          },
        }),
      },
    };
  }

  return {
    async prepare(what) {
      const messages = what.items.map((item) => message(what, ...item));
      messages.push({ role: "user", content: what.question });
      const schema = jsonSchema(what.tool.parameters);
      return { model: model(what.model), messages, tool: what.tool, schema };
    },

    async run(prepared) {
      const out = { text: "", deltas: [], calls: [] };
      out.text = (await generateText(call(prepared, out))).text;
      return out;
    },

    async stream(prepared) {
      const out = { text: "", deltas: [], calls: [] };
      const result = streamText(call(prepared, out));
      for await (const delta of result.textStream) out.deltas.push(delta);
      out.text = await result.text;
      return out;
    },
  };
}

function message(what, kind, text, number) {
  const named = { toolCallId: `call_old_${number}`, toolName: what.tool.name };
  switch (kind) {
    case "user":
      return { role: "user", content: text };
    case "assistant":
      return { role: "assistant", content: what.answer };
    case "call": {
      const input = { a: number, b: number };
      return { role: "assistant", content: [{ type: "tool-call", ...named, input }] };
    }
    default: {
      const output = { type: "text", value: "2000000" };
      return { role: "tool", content: [{ type: "tool-result", ...named, output }] };
    }
  }
}
