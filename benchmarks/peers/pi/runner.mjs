// pi-agent-core: an `Agent` for each run, since it keeps the conversation. It always streams.

import { Agent } from "@earendil-works/pi-agent-core";

const APIS = {
  responses: "openai-responses",
  chat: "openai-completions",
  messages: "anthropic-messages",
};
const NOTHING = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

export async function make(protocol, url) {
  const { streamSimple } = await import(
    `@earendil-works/pi-ai/api/${APIS[protocol]}`
  );

  async function ask(prepared, listener) {
    const out = { text: "", deltas: [], calls: [] };
    const { name, description, parameters } = prepared.tool;
    const execute = async (_, { a, b }) => {
      out.calls.push([a, b]);
      return { content: [{ type: "text", text: String(1_000_000 + a + b) }], details: {} };
    };
    const agent = new Agent({
      initialState: {
        systemPrompt: "",
        model: prepared.model,
        thinkingLevel: "off",
        tools: [{ name, label: name, description, parameters, execute }],
        messages: prepared.messages,
      },
      streamFn: (model, context, options) =>
        streamSimple(model, context, { ...options, apiKey: "key" }),
    });
    if (listener) agent.subscribe((event) => listener(event, out));
    await agent.prompt(prepared.question);
    if (agent.state.errorMessage) throw new Error(agent.state.errorMessage);
    const last = agent.state.messages.at(-1);
    out.text = last.content.map((part) => part.text ?? "").join("");
    return out;
  }

  return {
    async prepare(what) {
      const model = {
        id: what.model,
        name: what.model,
        api: APIS[protocol],
        provider: protocol === "messages" ? "anthropic" : "openai",
        baseUrl: protocol === "messages" ? url : `${url}/v1`,
        reasoning: false,
        input: ["text"],
        cost: NOTHING,
        contextWindow: 1_000_000,
        maxTokens: 4096,
      };
      const messages = what.items.map((item) => message(what, model, ...item));
      return { model, messages, tool: what.tool, question: what.question };
    },

    run: (prepared) => ask(prepared),

    stream: (prepared) =>
      ask(prepared, (event, out) => {
        if (
          event.type === "message_update" &&
          event.assistantMessageEvent.type === "text_delta"
        ) {
          out.deltas.push(event.assistantMessageEvent.delta);
        }
      }),
  };
}

function message(what, model, kind, text, number) {
  const timestamp = 1780000000000;
  const toolCallId = `call_old_${number}`;
  const { name } = what.tool;
  const said = (content, stopReason) => ({
    role: "assistant",
    content: [content],
    api: model.api,
    provider: model.provider,
    model: model.id,
    usage: { ...NOTHING, totalTokens: 0, cost: { ...NOTHING, total: 0 } },
    stopReason,
    timestamp,
  });
  switch (kind) {
    case "user":
      return { role: "user", content: text, timestamp };
    case "assistant":
      return said({ type: "text", text: what.answer }, "stop");
    case "call": {
      const values = { a: number, b: number };
      const call = { type: "toolCall", id: toolCallId, name, arguments: values };
      return said(call, "toolUse");
    }
    default: {
      const content = [{ type: "text", text: "2000000" }];
      return { role: "toolResult", toolCallId, toolName: name, content, isError: false, timestamp };
    }
  }
}
