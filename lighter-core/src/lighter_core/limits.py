"""What a run may use up."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import LimitExceededError

__all__ = ["RunLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """Limits of one run; reaching one fails the run and keeps what it completed.

    Attributes:
        model_calls: How many times the model may be called; `None` lifts the limit.
    """

    model_calls: int | None = 100

    def __post_init__(self) -> None:
        value: object = self.model_calls
        if value is None:
            return
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(
                f"RunLimits.model_calls must be a positive int or None, got {value!r}"
            )

    def check_model_calls(self, made: int) -> None:
        """Refuse one more model call after `made` calls.

        Raises:
            LimitExceededError: When the limit is reached.
        """
        if self.model_calls is not None and made >= self.model_calls:
            raise LimitExceededError(
                f"the run reached its limit of {self.model_calls} model calls; raise it"
                " with Agent(limits=RunLimits(model_calls=…)), or lift it with None",
                limit="model_calls",
                value=self.model_calls,
            )
