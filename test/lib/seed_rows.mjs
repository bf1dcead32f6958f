// seed_rows - which rows of test/seeds/rows.md the tests of a program prove, as seed_rows.py has it.

import fs from "node:fs";

const ROWS = new URL("../seeds/rows.md", import.meta.url);

// Title of a test of PROGRAM (its path in the repository): the ids of the rows that name it, open ones left out.
export function provenBy(program) {
  const proven = new Map();
  for (const line of fs.readFileSync(ROWS, "utf8").split("\n")) {
    if (!line.startsWith("| ") || line.includes(" | open: ")) continue;
    for (const [, path, title] of line.matchAll(/`([^`:\s]+)::([^`]+)`/g)) {
      if (path === program) proven.set(title, [...(proven.get(title) ?? []), line.slice(2, 7)]);
    }
  }
  return proven;
}
