"""The commands of `python -m lighter_core`, one module each.

A command's module has two functions, and is imported when it is the one asked for:

```python
def configure(parser: argparse.ArgumentParser) -> None: ...   # its arguments
def run(given: argparse.Namespace) -> int: ...                # the exit status
```

Exit status: 0 for fine, 1 when something is broken, 2 for wrong usage.
"""
