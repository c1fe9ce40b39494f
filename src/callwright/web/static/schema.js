// JSON Schema as far as a form needs it: references, alternatives, defaults, and which alternative a value fits.

const STEPS = 20; // a chain of references longer than this is a circle

/** The schema that a reference points to, joined with what stands beside it; `allOf` becomes one schema. */
export function resolve(schema, root) {
  let found = asObject(schema);
  for (let step = 0; found.$ref !== undefined && step < STEPS; step++) {
    const { $ref, ...beside } = found;
    found = { ...asObject(follow($ref, root)), ...beside };
  }
  if (found.$ref !== undefined) return { title: found.title, description: `the reference ${found.$ref} leads in a circle` };
  if (Array.isArray(found.allOf)) {
    const { allOf, ...rest } = found;
    found = allOf.map((part) => resolve(part, root)).reduce(join, rest);
  }
  return found;
}

function asObject(schema) {
  if (schema === false) return { not: {}, description: "no value is allowed here" };
  return schema && typeof schema === "object" && !Array.isArray(schema) ? schema : {};
}

function follow(reference, root) {
  if (reference === "#") return root;
  if (!String(reference).startsWith("#/")) return {};
  let place = root;
  for (const step of reference.slice(2).split("/")) {
    let key = step.replaceAll("~1", "/").replaceAll("~0", "~");
    try {
      key = decodeURIComponent(key);
    } catch {
      // a percent sign that encodes nothing is part of the name
    }
    if (place === null || typeof place !== "object" || !Object.hasOwn(place, key)) return {};
    place = place[key];
  }
  return place;
}

function join(one, other) {
  const both = { ...one, ...other };
  if (one.properties || other.properties) both.properties = { ...one.properties, ...other.properties };
  if (one.required || other.required) both.required = [...new Set([...(one.required || []), ...(other.required || [])])];
  return both;
}

/** An optional part that may be null and is null when left out: the other alternative is all a form needs to show. */
export function withoutNull(schema, root) {
  const choices = alternatives(schema, root);
  if (!choices || (schema.default ?? null) !== null) return schema;
  const rest = choices.filter((choice) => typesOf(choice.schema)[0] !== "null");
  if (rest.length !== 1 || rest.length === choices.length) return schema;
  const { title, description } = schema;
  return { ...rest[0].schema, ...(title && { title }), ...(description && { description }) };
}

/** The kinds of value a schema allows: [] if it does not say. */
export function typesOf(schema) {
  if (Array.isArray(schema.type)) return schema.type;
  if (schema.type) return [schema.type];
  if (schema.properties || schema.additionalProperties) return ["object"];
  if (schema.items || schema.prefixItems) return ["array"];
  return [];
}

/** The alternatives of a schema as [{schema, label}], or null if there is only one shape. */
export function alternatives(schema, root) {
  const listed = schema.anyOf || schema.oneOf;
  if (Array.isArray(listed) && listed.length) {
    const { anyOf, oneOf, discriminator, title, description, default: preset, ...shared } = schema;
    const parts = listed.map((part) => (Object.keys(shared).length ? join(shared, resolve(part, root)) : resolve(part, root)));
    return parts.map((part, place) => ({ schema: part, label: labelOf(part, place, root) }));
  }
  const types = typesOf(schema);
  if (types.length < 2) return null;
  return types.map((type, place) => ({ schema: { ...schema, type, title: undefined }, label: labelOf({ type }, place, root) }));
}

function labelOf(schema, place, root) {
  if (schema.title) return schema.title;
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  const told = Object.entries(schema.properties || {}).map(([name, part]) => [name, resolve(part, root)]).find(([, part]) => part.const !== undefined);
  if (told) return `${told[0]}: ${JSON.stringify(told[1].const)}`;
  if (schema.enum) return "one of " + schema.enum.slice(0, 3).map((value) => JSON.stringify(value)).join(", ");
  const [type] = typesOf(schema);
  if (type === "array") return "list";
  if (type === "object" && schema.required?.length) return "object with " + schema.required.slice(0, 3).join(", ");
  return type || `shape ${place + 1}`;
}

function typeName(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "number" && Number.isInteger(value) ? "integer" : typeof value;
}

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** How well a value fits a schema: 0 not at all, higher is better. */
export function fit(schema, value, root, depth = 0) {
  schema = resolve(schema, root);
  if (schema.const !== undefined) return same(schema.const, value) ? 9 : 0;
  if (schema.enum) return schema.enum.some((one) => same(one, value)) ? 8 : 0;
  const choices = schema.anyOf || schema.oneOf;
  if (choices && depth < 6) return Math.max(0, ...choices.map((choice) => fit(choice, value, root, depth + 1)));
  const types = typesOf(schema);
  const type = typeName(value);
  if (types.length && !types.includes(type) && !(type === "integer" && types.includes("number"))) return 0;
  if (type !== "object" || !schema.properties || depth > 6) return types.length ? 4 : 1;
  if ((schema.required || []).some((name) => !Object.hasOwn(value, name))) return 1;
  let score = 5;
  for (const [name, part] of Object.entries(value)) {
    if (Object.hasOwn(schema.properties, name)) {
      const part_fit = fit(schema.properties[name], part, root, depth + 1);
      if (!part_fit) return 0;
      score += part_fit / 100;
    } else score -= 0.5;
  }
  return Math.max(0.5, score);
}

/** A first value for a part that the user adds. */
export function initial(schema, root, depth = 0) {
  schema = resolve(schema, root);
  if (schema.const !== undefined) return schema.const;
  if (schema.default !== undefined) return structuredClone(schema.default);
  if (schema.enum) return schema.enum[0];
  const choices = alternatives(schema, root);
  if (choices) return depth < 6 ? initial((choices.find(({ schema: part }) => typesOf(part)[0] !== "null") || choices[0]).schema, root, depth + 1) : null;
  switch (typesOf(schema)[0]) {
    case "object": {
      const value = {};
      for (const name of schema.required || []) {
        if (depth < 6) value[name] = initial(schema.properties?.[name] ?? {}, root, depth + 1);
      }
      return value;
    }
    case "array":
      return schema.prefixItems ? schema.prefixItems.map((part) => initial(part, root, depth + 1)) : Array.from({ length: Math.min(schema.minItems || 0, 20) }, () => initial(schema.items ?? {}, root, depth + 1));
    case "string":
      return "";
    case "boolean":
      return false;
    case "integer":
    case "number":
      return schema.minimum ?? 0;
    case "null":
      return null;
    default:
      return depth ? "" : {};
  }
}
