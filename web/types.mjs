// types.mjs - the API's types for the dashboard, from docs/api/openapi.yaml.
//
//   node types.mjs           writes src/schema.ts
//   node types.mjs --check   status 1 if that would change it
//
// One interface per schema of the document.  What is not required may be absent.

import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "src", "schema.ts");

const plain = (name) => /^[A-Za-z_]\w*$/.test(name);
const named = (ref) => ref.split("/").pop();

function comment(schema, indent) {
  return schema.description ? `${indent}/** ${schema.description.replace(/\*\//g, "* /").replace(/\s+/g, " ").trim()} */\n` : "";
}

function members(schema, indent) {
  const needed = new Set(schema.required ?? []);
  return Object.entries(schema.properties ?? {})
    .map(([name, inner]) => {
      const key = plain(name) ? name : JSON.stringify(name);
      return `${comment(inner, indent)}${indent}${key}${needed.has(name) ? "" : "?"}: ${typeOf(inner, indent)};\n`;
    })
    .join("");
}

function typeOf(schema, indent) {
  if (schema.$ref) return named(schema.$ref);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.oneOf) return schema.oneOf.map((one) => typeOf(one, indent)).join(" | ");
  switch (schema.type) {
    case "integer":
    case "number":
      return "number";
    case "boolean":
    case "string":
      return schema.type;
    case "array": {
      const item = typeOf(schema.items ?? {}, indent);
      return item.includes("|") ? `(${item})[]` : `${item}[]`;
    }
    case "object":
      if (schema.additionalProperties) return `Record<string, ${typeOf(schema.additionalProperties, indent)}>`;
      return `{\n${members(schema, `${indent}  `)}${indent}}`;
    default:
      return "unknown";
  }
}

const api = parse(readFileSync(join(here, "..", "docs", "api", "openapi.yaml"), "utf8"));
const text =
  "// schema.ts - the API's types; made by types.mjs from docs/api/openapi.yaml, not by hand.\n" +
  Object.entries(api.components.schemas)
    .map(([name, schema]) => `\n${comment(schema, "")}export interface ${name} {\n${members(schema, "  ")}}\n`)
    .join("");

if (process.argv[2] === "--check") {
  if (readFileSync(target, "utf8") !== text) {
    process.stderr.write("src/schema.ts is not what docs/api/openapi.yaml says: run node types.mjs in web/\n");
    process.exit(1);
  }
} else {
  writeFileSync(target, text);
}
