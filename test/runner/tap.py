"""tap - reads what a test program printed."""

import re

POINT = re.compile(r"(not )?ok\b(?: +(\d+))?(?: +-)? *([^#]*)(?:# *(\w+) *(.*))?")
PROVES = re.compile(r"# proves ((?:[A-Z]-\d{3} ?)+)$")


class Outcome:
    """What one run of a program showed."""

    def __init__(self):
        self.passed = self.failed = 0
        self.failures = []  # a list each: the title, then the comments below it
        self.proofs = []  # (title of the point, row)
        self.seconds = self.cpu = 0.0
        self.flaky = False

    def complain(self, text):
        """A failure of the program as a whole."""
        self.failed += 1
        self.failures.append([text])

    def read(self, text):
        """Counts the points in TEXT. A missing plan, a point too few and a skipped point are failures."""
        planned, points, title, comments = None, 0, "", []
        for line in text.splitlines():
            proof = PROVES.match(line)
            if proof:
                self.proofs += [(title, row) for row in proof[1].split()]
            elif line.startswith("#"):
                comments.append(line)
            plan = re.match(r"1\.\.(\d+)", line)
            if plan:
                planned = (planned or 0) + int(plan[1])
                if int(plan[1]) == 0:
                    self.complain("its plan has no points")
                continue
            point = POINT.match(line)
            if not point:
                continue
            points += 1
            title = (point[3] or "").strip() or f"point {points}"
            comments = []
            if (point[4] or "").upper() == "SKIP":
                self.complain(f"{title}: skipped: {point[5].strip()}; a test that lacks something fails and names it")
            elif point[1]:
                self.failed += 1
                comments = [title]
                self.failures.append(comments)
            else:
                self.passed += 1
        if planned is None:
            self.complain("no TAP plan")
        elif planned != points:
            self.complain(f"{planned} points planned, {points} seen")
