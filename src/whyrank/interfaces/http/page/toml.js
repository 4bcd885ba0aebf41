// Turned settings as the lines that whyrank.toml understands.

/** Write settings as TOML: a key with a dot is a table. */
export function toml(wish) {
  const tables = new Map();
  for (const [key, value] of Object.entries(wish)) {
    const [table, name] = key.split(".");
    tables.set(table, [...(tables.get(table) ?? []), `${name} = ${literal(value)}`]);
  }
  return [...tables].map(([table, lines]) => `[${table}]\n${lines.join("\n")}\n`).join("\n");
}

/** Write a number so that TOML reads the same one: it knows no exponent without digits on both sides. */
function literal(value) {
  return String(value);
}
