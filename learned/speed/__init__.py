"""The parameters of the placement cost model, from measurements, with the error on what was held out."""

from .duty import fit_duty
from .interference import fit_pairs
from .report import Fit
from .servers import fit_servers
from .synchronisation import fit_steps

__all__ = ["Fit", "fit_duty", "fit_pairs", "fit_servers", "fit_steps"]
