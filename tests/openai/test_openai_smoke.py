from lighter_core import MessageEvent, ModelRequest, UserMessage
from support.loopback import EVENT_STREAM, Answer
from support.recordings import exchanges

ASK = ModelRequest([UserMessage("Hello")])


async def test_smoke(server, make):
    for each in exchanges("openai-responses"):
        if "rig.openai-streaming-grammar" in each.conversation:
            server.script(each.answer())
            async for event in make().stream(ASK):
                print(event)
