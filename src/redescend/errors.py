"""What can go wrong: one base class, and each error is also a builtin's kind."""


class RedescendError(Exception):
    """Base of every error that `redescend` raises on purpose."""


class ParameterError(RedescendError, ValueError):
    """A setting is outside its range; raised when the object is made."""


class DataError(RedescendError, ValueError):
    """A record or a stream cannot be used; the learner is left as it was."""


class BadRecordError(DataError):
    """A record cannot be used, and the run was to end there."""


class UntoldError(DataError):
    """An oracle has not been told about this round."""


class DivergenceError(RedescendError, ArithmeticError):
    """The next action would not be finite; the learner keeps its last finite action."""


class MissingExtraError(RedescendError, ImportError):
    """An optional dependency is not installed; the message names the command that installs it."""
