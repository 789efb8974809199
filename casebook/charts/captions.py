"""What a caption says, of a chart or of a table."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Caption:
    """The parts of a caption.

    title: what is shown. finding: what came out, computed from the data. clause: what a reader
    cannot do without, in a few words. reading: how to read the marks. source: where the runs came
    from. A page that is read shows title and clause; one that is checked, all of it.
    """

    title: str
    finding: str = ""
    clause: str = ""
    reading: str = ""
    source: str = ""

    @property
    def alt(self) -> str:
        """Return the title and the finding, as those hear it who cannot see the drawing."""
        return f"{self.title}. {self.finding}"
