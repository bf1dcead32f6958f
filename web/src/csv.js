// A figure as CSV: RFC 4180, a record a point. Pure functions.

// A cell that a spreadsheet would take for a formula gets a quote before it.
function cell(value) {
  if (value === undefined || value === null || Number.isNaN(value)) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const named = (axis) => (axis.unit ? `${axis.label} [${axis.unit}]` : axis.label);

function records(figure) {
  if (figure.kind === "strip")
    return [["name", `value [${figure.unit}]`], ...figure.rows.flatMap((row) => row.values.map((value) => [row.name, value]))];
  if (figure.kind === "bars")
    return [["name", `value [${figure.unit}]`, "low", "high"], ...figure.rows.map((row) => [row.name, row.value, row.low, row.high])];
  return [["series", named(figure.x), named(figure.y), "low", "high", "note"],
    ...figure.series.flatMap((one) => one.points.map((p) => [one.name, p.x, p.y, p.low, p.high, p.note]))];
}

export const csv = (figure) => records(figure).map((record) => record.map(cell).join(",")).join("\r\n") + "\r\n";
