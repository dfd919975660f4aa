"""The errors of this package: each states what was wrong, where, and what to do.

A caller that wants to catch "anything this project refuses" catches `PrivHelpersError`.
"""


class PrivHelpersError(Exception):
    """Base of every refusal."""


class InvalidParameter(PrivHelpersError, ValueError):
    """A value is unknown, of the wrong type or out of its range."""


class MissingArtifact(PrivHelpersError, FileNotFoundError):
    """A file that an earlier chapter writes is not there."""


class DamagedArtifact(PrivHelpersError):
    """A file does not carry the bytes that were written."""


class ArtifactUnavailable(PrivHelpersError, OSError):
    """The system refuses to write a file, such as on a full disk; the old file is as it was."""


class UnsafeIdentifier(PrivHelpersError):
    """A synthetic identifier could belong to a person."""


class UnsupportedModel(PrivHelpersError):
    """A model, or a module inside it, that a helper cannot treat correctly."""


class TrainingFailed(PrivHelpersError, RuntimeError):
    """Training produced something that must not be used (non-finite weights, weights that never moved)."""


class RunFailed(PrivHelpersError, RuntimeError):
    """A notebook run or a site build did not complete."""


class SamplerMismatch(PrivHelpersError, ValueError):
    """The sampler that ran is not the one that the accountant counts for."""


class SearchNotRandom(PrivHelpersError, ValueError):
    """A search made a fixed number of runs, and an accountant counts for one whose number was drawn."""


class BudgetExceeded(PrivHelpersError):
    """A run would spend more than the budget that it was sealed with."""


class ResumeRefused(PrivHelpersError):
    """A run is not the one that its ledger, or its checkpoint, was written for."""


class LedgerDamaged(DamagedArtifact):
    """A ledger does not carry the lines that were written."""


class LedgerInUse(PrivHelpersError):
    """Another process is writing to the ledger."""


class ControlFailed(PrivHelpersError):
    """An attack found something where there is nothing to find, so that its other figures mean nothing."""


class AuditContradiction(PrivHelpersError):
    """An audit certifies more leakage than the accountant allows: one of them, or the training, is wrong."""


class NotOneNumber(PrivHelpersError, TypeError):
    """One number is requested, but several that cannot be added are needed."""


class BadRecords(PrivHelpersError, ValueError):
    """A user-supplied file of records cannot be audited; the message names the file and the line."""


class MissingProgram(PrivHelpersError, FileNotFoundError):
    """A program of the system that a command needs is not installed."""
