"""The plugins of the lab, good and bad, each with the documented result of asking for it.

Each case is a distribution `lab-<name>` with one entry point `<name>`; its value is the
module `lab_<name>` unless the case says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

from lighter_core import (
    IncompatiblePluginError,
    ModelError,
    PluginConflictError,
    PluginError,
    PluginLoadError,
    PluginNotFoundError,
    ToolDefinitionError,
)

HEAD = """
from lighter_core import AssistantMessage, MessageEvent, ModelError, hookimpl, tool

class Echo:
    name = "echo"

    async def invoke(self, request):
        return AssistantMessage("echo")

    async def stream(self, request):
        yield MessageEvent(AssistantMessage("echo"))

@tool
def shout(text: str) -> str:
    "Shout."
    return text.upper()

"""
MAKES = "@hookimpl\ndef create_provider(name, options):\n    return Echo()\n"
GIVES = "@hookimpl\ndef get_tools():\n    return [shout]\n"
HOOKS = "@hookimpl\ndef before_model(request): ...\n"


@dataclass(frozen=True)
class Case:
    """A plugin and what happens when it is asked for.

    Attributes:
        name: Of the entry point and, after `lab-`, of the distribution.
        kind: `"providers"`, `"tools"` or `"hooks"`.
        source: The module, after `HEAD`; `None`: there is none.
        error: What is raised, `None` for success.
        words: What the error's text has.
        value: What the entry point names, `{m}` standing for the module.
        before: Its state before it is asked for.
        after: Its state afterwards.
        entry: The entry point's name, when it is not the case's.
        metadata: The whole METADATA, when it is not the usual one.
        points: The whole entry_points.txt, likewise; `{m}` as above.
    """

    name: str
    kind: str
    source: str | None
    error: type[Exception] | None = None
    words: tuple[str, ...] = ()
    value: str = "{m}"
    before: str = "available"
    after: str = "failed"
    entry: str = ""
    metadata: str | bytes | None = None
    points: str | bytes | None = None

    @property
    def module(self) -> str:
        return "lab_" + self.name.replace("-", "_")

    @property
    def asked(self) -> str:
        return self.entry or self.name


def good(name: str, kind: str, source: str, **more: str) -> Case:
    return Case(name, kind, source, after="loaded", **more)  # type: ignore[arg-type]


def broken(
    name: str, kind: str, source: str | None, *words: str, value: str = "{m}"
) -> Case:
    return Case(name, kind, source, PluginLoadError, words, value)


def refused(name: str, api: str, *words: str, kind: str = "providers") -> Case:
    source = f"{MAKES}{GIVES}{HOOKS}PLUGIN_API = {api}\n"
    return Case(
        name, kind, source, IncompatiblePluginError, words, after="incompatible"
    )


def useless(
    name: str, kind: str, source: str, error: type[Exception], *words: str
) -> Case:
    """A plugin that loads, and whose function then does not do what it must."""
    return Case(name, kind, source, error, words, after="loaded")


def unfindable(name: str, **more: object) -> Case:
    """A distribution that is left out because of its metadata."""
    return Case(name, "providers", MAKES, PluginNotFoundError, ("no provider",),
                before="", after="", **more)  # type: ignore[arg-type]  # fmt: skip


def provider(body: str) -> str:
    return f"@hookimpl\ndef create_provider(name, options):\n    {body}\n"


def tools(body: str) -> str:
    return f"@hookimpl\ndef get_tools():\n    {body}\n"


BAD_REPR = "type('X', (), {'__repr__': lambda self: 1 / 0})()"

CASES = [
    # Good ones, in every form.
    good("good-provider", "providers", MAKES),
    good("good-object", "providers", "class P:\n @hookimpl\n def create_provider(self):\n  return Echo()\nclass Space:\n plugin = P()\n", value="{m}:Space.plugin [all]"),
    good("spaced-value", "providers", "class P:\n @hookimpl\n def create_provider(self):\n  return Echo()\nplugin = P()\n", value="{m} : plugin"),
    good("says-one", "providers", MAKES + "PLUGIN_API = 1\n"),
    good("marked-function", "providers", MAKES, value="{m}:create_provider"),
    good("prints", "providers", MAKES + "print('hello from a plugin')\n"),
    good("good-hooks", "hooks", HOOKS),
    good("async-hooks", "hooks", "@hookimpl\nasync def before_model(request): ...\n"),
    good("good-tools", "tools", GIVES),
    good("tuple-of-tools", "tools", tools("return (shout,)")),
    good("set-of-tools", "tools", tools("return {shout}")),
    good("no-tools-today", "tools", tools("return []")),
    good("yields-tools", "tools", tools("yield shout")),
    good("generator-of-tools", "tools", tools("return (each for each in [shout])")),
    good("greedy-provider", "providers", MAKES + GIVES + HOOKS),
    good("greedy-tools", "tools", MAKES + GIVES + HOOKS),
    good("greedy-hooks", "hooks", MAKES + GIVES + HOOKS),
    # Broken at import.
    broken("import-error", "providers", "import no_such_module_here\n", "ModuleNotFoundError"),
    broken("syntax-error", "providers", "def (\n", "SyntaxError"),
    broken("raises", "providers", "raise ValueError('at import')\n", "ValueError: at import"),
    broken("raises-lines", "tools", "raise ValueError('one\\ntwo')\n", "ValueError: one two"),
    broken("raises-secret", "hooks", "raise ValueError('https://user:pass-word@host/x?token=t0ken')\n", "https://host/x"),
    broken("exits", "providers", "raise SystemExit(3)\n", "SystemExit: 3"),
    broken("exits-quietly", "hooks", "import sys\nsys.exit()\n", "SystemExit"),
    broken("bad-text", "providers", "class E(Exception):\n def __str__(self): raise RuntimeError('no')\nraise E\n", "its text cannot be read"),
    broken("recursion", "providers", "def f(): f()\nf()\n", "RecursionError"),
    broken("no-module", "providers", None, "ModuleNotFoundError"),
    broken("no-module-tools", "tools", None, "ModuleNotFoundError"),
    broken("no-attribute", "providers", MAKES, "AttributeError", value="{m}:missing"),
    broken("relative", "providers", None, "TypeError", value=".relative"),
    broken("bad-getattr", "providers", MAKES + "def __getattr__(name): raise RuntimeError(name)\n", "RuntimeError: plugin", value="{m}:plugin"),
    broken("asks-for-itself", "providers", f"from lighter_core import Model\nModel.from_name('asks-for-itself')\n{MAKES}", "implements none of create_provider"),
    # No plugins of their kind.
    broken("nothing", "providers", "x = 1\n", "implements none of create_provider"),
    broken("is-a-class", "providers", "class Plugin:\n @hookimpl\n def create_provider(self): ...\n", "is a class", value="{m}:Plugin"),
    broken("is-none", "providers", "plugin = None\n", "(NoneType) implements none", value="{m}:plugin"),
    broken("is-an-int", "tools", "plugin = 3\n", "(int) implements none", value="{m}:plugin"),
    broken("is-a-function", "providers", MAKES + "def plain(): ...\n", "is a function", value="{m}:plain"),
    broken("bad-dir", "hooks", "class P:\n def __dir__(self): return 1 / 0\nplugin = P()\n", "ZeroDivisionError", value="{m}:plugin"),
    broken("only-hooks", "providers", HOOKS, "implements none of create_provider"),
    broken("only-provider", "hooks", MAKES, "implements none of before_agent"),
    broken("misspelled", "hooks", "@hookimpl\ndef befor_model(request): ...\n", "did you mean before_model"),
    broken("misspelled-factory", "providers", "@hookimpl\ndef create_providers(name): ...\n", "did you mean create_provider"),
    broken("wrong-argument", "hooks", "@hookimpl\ndef before_model(req): ...\n", "takes 'req'"),
    broken("wrong-factory", "providers", "@hookimpl\ndef create_provider(name, opts): ...\n", "takes 'opts'"),
    broken("default", "hooks", "@hookimpl\ndef before_model(request=None): ...\n", "a default"),
    broken("star", "tools", "@hookimpl\ndef get_tools(*names): ...\n", "plain arguments"),
    broken("unmarked", "hooks", "def before_model(request): ...\n", "is not marked"),
    broken("unmarked-factory", "providers", "def create_provider(name): ...\n", "is not marked"),
    broken("generator-hook", "hooks", "@hookimpl\ndef before_model(request): yield\n", "is a generator"),
    broken("async-factory", "providers", "@hookimpl\nasync def create_provider(): ...\n", "is async"),
    broken("async-tools", "tools", "@hookimpl\nasync def get_tools(): ...\n", "is async"),
    broken("async-yield", "tools", "@hookimpl\nasync def get_tools(): yield shout\n", "is a generator"),
    broken("twice", "hooks", HOOKS + "@hookimpl(specname='before_model')\ndef again(request): ...\n", "twice"),
    # For another plugin interface.
    refused("newer", "2", "interface 2", "a newer lighter-core"),
    refused("older", "0", "interface 0", "a newer version of it"),
    refused("newer-tools", "7", "interface 7", kind="tools"),
    refused("newer-hooks", "7", "interface 7", kind="hooks"),
    refused("api-text", "'1'", "'1'", "no int"),
    refused("api-none", "None", "None", "no int"),
    refused("api-bool", "True", "True", "no int"),
    refused("api-float", "1.0", "1.0", "no int"),
    broken("api-bad-repr", "providers", f"{MAKES}PLUGIN_API = {BAD_REPR}\n", "ZeroDivisionError"),
    # They load, and then make something else.
    useless("makes-none", "providers", provider("return None"), PluginError, "made None"),
    useless("makes-int", "providers", provider("return 3"), PluginError, "made int"),
    useless("makes-class", "providers", provider("return Echo"), PluginError, "made the class Echo"),
    useless("makes-coroutine", "providers", "async def later(): ...\n" + provider("return later()"), PluginError, "made coroutine", "plain def"),
    useless("complains", "providers", provider("raise TypeError('unknown option')"), TypeError, "unknown option"),
    useless("no-key", "providers", provider("raise ModelError('no key', 'auth_error')"), ModelError, "no key"),
    useless("factory-exits", "providers", provider("raise SystemExit(3)"), PluginLoadError, "SystemExit: 3"),
    useless("gives-none", "tools", tools("return None"), PluginError, "gave NoneType"),
    useless("gives-int", "tools", tools("return 3"), PluginError, "gave int"),
    useless("gives-text", "tools", tools("return 'shout'"), PluginError, "gave str"),
    useless("gives-functions", "tools", tools("return [print]"), PluginError, "gave builtin"),
    useless("gives-coroutine", "tools", "async def later(): ...\n" + tools("return later()"), PluginError, "gave coroutine"),
    useless("tools-raise", "tools", tools("raise ValueError('no tools')"), PluginLoadError, "ValueError: no tools"),
    useless("tools-raise-late", "tools", tools("yield shout; raise ValueError('late')"), PluginLoadError, "ValueError: late"),
    useless("tools-exit", "tools", tools("raise SystemExit(3)"), PluginLoadError, "SystemExit: 3"),
    useless("same-tool-twice", "tools", tools("return [shout, shout]"), ToolDefinitionError, "'shout'"),
    # Names.
    Case("impostor", "providers", MAKES, PluginConflictError, ("belongs to lighter-claude",), before="reserved", after="reserved", entry="Claude"),
    Case("impostor-too", "providers", MAKES, PluginConflictError, ("belongs to lighter-openai",), before="reserved", after="reserved", entry="openai_chat"),
    Case("impostor-beside", "providers", MAKES, PluginConflictError, ("lighter-local",), before="reserved", after="reserved", entry="local"),
    Case("one-of-two", "providers", MAKES, PluginConflictError, ("lab-one-of-two", "lab-two-of-two"), before="conflict", after="conflict", entry="same"),
    Case("two-of-two", "providers", MAKES, PluginConflictError, ("lab-one-of-two", "lab-two-of-two"), before="conflict", after="conflict", entry="same"),
    good("lower-case", "providers", MAKES, entry="case-name"),
    good("upper-case", "providers", MAKES, entry="Case-Name"),
    good("underscore", "providers", MAKES, entry="case_name"),
    # Metadata.
    Case("no-version", "providers", MAKES, after="loaded", metadata="Metadata-Version: 2.1\nName: lab-no-version\n"),
    Case("one-bad-line", "providers", MAKES, after="loaded", points="[console_scripts]\nnot a line\n[lighter.providers]\nnor this\none-bad-line = {m}\n= {m}\nx =\n"),
    unfindable("nameless", metadata="Metadata-Version: 2.1\nVersion: 1.0\n"),
    unfindable("no-metadata", metadata=""),
    unfindable("odd-name", metadata="Metadata-Version: 2.1\nName: \x1b[31mred\nVersion: 1.0\n"),
    unfindable("other-name", metadata="Metadata-Version: 2.1\nName: lighter-claude\nVersion: 9.9\n"),
    unfindable("bad-metadata", metadata=b"Name: lab-bad-metadata\nVersion: \xff\xfe\n"),
    unfindable("bad-utf-8", points=b"[lighter.providers]\nbad-utf-8 = lab_\xff\xfe\n"),
    unfindable("no-value", points="[lighter.providers]\nno-value\n"),
    unfindable("colon", points="[lighter.providers]\ncolon:x = {m}\n"),
    unfindable("open-section", points="[lighter.providers\nopen-section = {m}\n"),
    unfindable("wrong-group", points="[lighter.provider]\nwrong-group = {m}\n"),
]  # fmt: skip
