// Forms from JSON Schema: every value a schema allows can be entered, and a field left empty is not sent.
import { html, useEffect, useMemo, useRef, useState } from "./vendor.js";
import { oneLine, plain, show } from "./text.js";
import { alternatives, fit, initial, resolve, typesOf, withoutNull } from "./schema.js";

let serial = 0;
function useStableId() {
  const id = useRef(null);
  if (!id.current) id.current = "f" + ++serial;
  return id.current;
}

/** A form for an object; `value` is plain JSON and `onChange` gets the next one. */
export function SchemaForm({ schema, value, onChange }) {
  const found = resolve(schema, schema);
  if (alternatives(found, schema)) return html`<div class="form"><${Value} schema=${found} root=${schema} value=${value} onChange=${onChange} label="arguments" required=${true} /></div>`;
  return html`<div class="form"><${Properties} schema=${found} root=${schema} value=${value ?? {}} onChange=${onChange} /></div>`;
}

function Properties({ schema, root, value, onChange }) {
  const known = Object.keys(schema.properties || {});
  const extra = Object.keys(value).filter((name) => !known.includes(name));
  const open = schema.additionalProperties !== undefined && schema.additionalProperties !== false;
  const set = (name, next) => {
    const changed = { ...value };
    if (next === undefined) delete changed[name];
    else changed[name] = next;
    onChange(changed);
  };
  return html`${!known.length && !extra.length && !open && html`<p class="note">This takes no arguments.</p>`}
    ${known.map((name) => html`<${Field} key=${name} name=${name} schema=${schema.properties[name]} root=${root} value=${Object.hasOwn(value, name) ? value[name] : undefined}
      required=${(schema.required || []).includes(name)} onChange=${(next) => set(name, next)} />`)}
    ${extra.map((name) => html`<${Field} key=${name} name=${name} schema=${open ? schema.additionalProperties : {}} root=${root} value=${value[name]} onChange=${(next) => set(name, next)} onRemove=${() => set(name, undefined)} />`)}
    ${open && html`<${AddKey} taken=${Object.keys(value)} onAdd=${(name) => set(name, initial(schema.additionalProperties, root, 1))} />`}`;
}

function AddKey({ taken, onAdd }) {
  const [name, setName] = useState("");
  const add = () => {
    if (name && !taken.includes(name)) (onAdd(name), setName(""));
  };
  return html`<div class="inline"><input class="mono" aria-label="Name of a new entry" placeholder="name of a new entry" value=${name} onInput=${(event) => setName(event.target.value)}
    onKeyDown=${(event) => event.key === "Enter" && (event.preventDefault(), add())} /><button type="button" onClick=${add} disabled=${!name || taken.includes(name)}>Add</button></div>`;
}

const kindOf = (schema, root) => {
  const choices = alternatives(schema, root);
  if (!choices) return schema.const !== undefined ? "fixed" : schema.enum ? "choice" : schema.format || typesOf(schema)[0] || "any";
  return choices.map((choice) => choice.label).join(" or ");
};

function Field({ name, schema, root, value, required, onChange, onRemove }) {
  const resolved = resolve(schema, root);
  const found = required || value === null ? resolved : withoutNull(resolved, root);
  const id = useStableId();
  const large = isLarge(found, root);
  const head = html`<b>${show(found.title && found.title.toLowerCase() !== name.toLowerCase().replaceAll("_", " ") ? `${name} · ${found.title}` : name)}</b><span class="kind">${show(oneLine(kindOf(found, root), 60))}${required ? "" : ", optional"}</span>`;
  const help = found.description && html`<p class="help" id=${id + "h"}>${show(found.description)}</p>`;
  const control = html`<${Value} id=${id} schema=${found} root=${root} value=${value} required=${required} onChange=${onChange} label=${name} help=${found.description ? id + "h" : null} />`;
  const remove = onRemove && html`<button type="button" class="quiet" onClick=${onRemove} aria-label=${"Remove " + plain(name)}>Remove</button>`;
  if (large) return html`<fieldset class="field group"><legend>${head}</legend>${help}${control}${remove}</fieldset>`;
  return html`<div class="field"><label for=${id}>${head}</label>${help}${control}${remove}</div>`;
}

/** Whether a field needs a frame of its own: it holds several controls. */
function isLarge(schema, root) {
  if (schema.const !== undefined || schema.enum) return false;
  const choices = alternatives(schema, root);
  if (choices) return true;
  return ["object", "array"].includes(typesOf(schema)[0]);
}

function Value(props) {
  const { schema, root } = props;
  if (schema.const !== undefined) return html`<${Constant} ...${props} />`;
  if (schema.enum) return html`<${Choice} ...${props} />`;
  const choices = alternatives(schema, root);
  if (choices) return html`<${Alternatives} ...${props} choices=${choices} />`;
  switch (typesOf(schema)[0]) {
    case "object":
      return html`<${ObjectValue} ...${props} />`;
    case "array":
      return html`<${ListValue} ...${props} />`;
    case "string":
      return html`<${TextValue} ...${props} />`;
    case "integer":
    case "number":
      return html`<${NumberValue} ...${props} />`;
    case "boolean":
      return html`<${Choice} ...${props} schema=${{ ...schema, enum: [true, false] }} />`;
    case "null":
      return html`<${Constant} ...${props} schema=${{ ...schema, const: null }} />`;
    default:
      return html`<${JsonValue} ...${props} />`;
  }
}

function Constant({ id, schema, value, required, onChange }) {
  useEffect(() => {
    if (required && value === undefined) onChange(schema.const);
  }, []);
  return html`<output id=${id} class="mono constant">${show(JSON.stringify(schema.const))}</output>`;
}

function Choice({ id, schema, value, required, onChange, help, label }) {
  const place = schema.enum.findIndex((one) => JSON.stringify(one) === JSON.stringify(value));
  const preset = schema.default === undefined || schema.default === null || schema.default === "" ? "" : ` (default: ${oneLine(schema.default, 40)})`;
  return html`<select id=${id} aria-label=${id ? null : plain(label)} aria-describedby=${help} value=${String(place)} onChange=${(event) => onChange(event.target.value === "-1" ? undefined : schema.enum[+event.target.value])}>
    ${(!required || place < 0) && html`<option value="-1">${required ? "choose" : "not set" + plain(preset)}</option>`}
    ${schema.enum.map((one, index) => html`<option value=${String(index)}>${plain(typeof one === "string" ? one : JSON.stringify(one))}</option>`)}</select>`;
}

function TextValue({ id, schema, value, required, onChange, help, label }) {
  const hint = schema.default !== undefined && schema.default !== "" && schema.default !== null ? `default: ${oneLine(schema.default, 60)}` : schema.examples?.length ? `for example ${oneLine(schema.examples[0], 60)}` : "";
  return html`<textarea id=${id} class="mono" rows="1" spellcheck="false" aria-label=${id ? null : plain(label)} aria-describedby=${help} placeholder=${plain(hint)} value=${typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value)}
    onInput=${(event) => onChange(event.target.value === "" && !required ? undefined : event.target.value)}></textarea>`;
}

function NumberValue({ id, schema, value, required, onChange, help, label }) {
  const [text, setText] = useState(value === undefined ? "" : String(value));
  const whole = typesOf(schema)[0] === "integer";
  const read = (raw) => (raw.trim() === "" ? undefined : Number(raw));
  useEffect(() => {
    if (!Object.is(read(text), value) && !Number.isNaN(read(text))) setText(value === undefined ? "" : String(value));
  }, [value]);
  const number = read(text);
  const wrong = number !== undefined && (Number.isNaN(number) ? "not a number" : whole && !Number.isInteger(number) ? "not a whole number" : whole && !Number.isSafeInteger(number) ? "too long for this page: use the terminal" : "");
  const change = (event) => {
    const raw = event.target.value;
    const next = read(raw);
    setText(raw);
    onChange(Number.isNaN(next) ? raw : next);
  };
  const range = [schema.minimum !== undefined && `at least ${schema.minimum}`, schema.maximum !== undefined && `at most ${schema.maximum}`, schema.default !== undefined && schema.default !== null && `default: ${oneLine(schema.default)}`].filter(Boolean).join(", ");
  return html`<input id=${id} class="mono" inputmode=${whole ? "numeric" : "decimal"} aria-label=${id ? null : plain(label)} aria-describedby=${help} aria-invalid=${Boolean(wrong)} placeholder=${plain(range)} value=${text} onInput=${change} />
    ${wrong && html`<p class="help bad">${wrong}</p>`}`;
}

function JsonValue({ id, value, onChange, help, label }) {
  const [text, setText] = useState(value === undefined ? "" : JSON.stringify(value));
  const [wrong, setWrong] = useState("");
  const change = (event) => {
    setText(event.target.value);
    try {
      onChange(event.target.value.trim() ? JSON.parse(event.target.value) : undefined);
      setWrong("");
    } catch (error) {
      setWrong(error.message);
    }
  };
  return html`<textarea id=${id} class="mono" rows="1" spellcheck="false" aria-label=${id ? null : plain(label)} aria-describedby=${help} aria-invalid=${Boolean(wrong)} placeholder="JSON" value=${text} onInput=${change}></textarea>
    ${wrong && html`<p class="help bad">${show(wrong)}</p>`}`;
}

function ObjectValue({ schema, root, value, required, onChange, label }) {
  const given = value !== null && typeof value === "object" && !Array.isArray(value);
  useEffect(() => {
    if (required && value === undefined && !schema.required?.length) onChange({});
  }, []);
  if (!given && !required) return html`<button type="button" onClick=${() => onChange(initial(schema, root))}>Add ${show(label)}</button>`;
  return html`<div class="nested"><${Properties} schema=${schema} root=${root} value=${given ? value : {}} onChange=${onChange} />
    ${!required && html`<button type="button" class="quiet" onClick=${() => onChange(undefined)}>Leave ${show(label)} out</button>`}</div>`;
}

function ListValue({ schema, root, value, required, onChange, label }) {
  const items = Array.isArray(value) ? value : [];
  const partOf = (place) => schema.prefixItems?.[place] ?? (typeof schema.items === "object" ? schema.items : {});
  const set = (next) => onChange(next.length || required ? next : undefined);
  const full = schema.maxItems !== undefined && items.length >= schema.maxItems;
  const fixed = schema.prefixItems && schema.items === false && items.length >= schema.prefixItems.length;
  const swap = (one, other) => {
    const next = [...items];
    [next[one], next[other]] = [next[other], next[one]];
    set(next);
  };
  return html`<div class="nested"><ol class="list">${items.map((item, place) => html`<li key=${place}>
      <${Value} schema=${resolve(partOf(place), root)} root=${root} value=${item} required=${true} label=${`${plain(label)} ${place + 1}`} onChange=${(next) => set(items.map((old, other) => (other === place ? next : old)))} />
      <span class="tools-of"><button type="button" class="quiet" disabled=${!place} onClick=${() => swap(place, place - 1)} aria-label=${`Move ${plain(label)} ${place + 1} up`}>↑</button>
      <button type="button" class="quiet" onClick=${() => set(items.filter((_, other) => other !== place))} aria-label=${`Remove ${plain(label)} ${place + 1}`}>✕</button></span></li>`)}</ol>
    ${!full && !fixed && html`<button type="button" onClick=${() => onChange([...items, initial(partOf(items.length), root, 1)])}>Add to ${show(label)}</button>`}</div>`;
}

/** One of several shapes: a selector, and the fields of the chosen one. */
function Alternatives({ id, schema, root, value, required, onChange, choices, label, help }) {
  const fits = () => {
    if (value === undefined) return -1;
    const scores = choices.map((choice) => fit(choice.schema, value, root));
    const best = Math.max(...scores);
    return best > 0 ? scores.indexOf(best) : -1;
  };
  const [chosen, setChosen] = useState(fits);
  const current = value === undefined ? -1 : chosen >= 0 && fit(choices[chosen]?.schema ?? false, value, root) > 0 ? chosen : Math.max(fits(), chosen);
  const choose = (event) => {
    const place = +event.target.value;
    setChosen(place);
    onChange(place < 0 ? undefined : initial(choices[place].schema, root, 1));
  };
  const own = useStableId();
  return html`<div class="nested"><select id=${id ?? own} aria-label=${`Kind of ${plain(label)}`} aria-describedby=${help} value=${String(current)} onChange=${choose}>
      ${(!required || current < 0) && html`<option value="-1">${required ? "choose" : "not set"}</option>`}
      ${choices.map((choice, place) => html`<option value=${String(place)}>${plain(choice.label)}</option>`)}</select>
    ${current >= 0 && typesOf(choices[current].schema)[0] !== "null" && choices[current].schema.const === undefined && html`<${Value} key=${current} schema=${choices[current].schema} root=${root} value=${value} required=${true} label=${label} onChange=${onChange} />`}</div>`;
}

/** A form with its JSON behind it. `onChange(value, fits)`: `fits` is false while the JSON cannot be read. */
export function ArgumentsEditor({ schema, value, onChange }) {
  const [raw, setRaw] = useState(null);
  const [wrong, setWrong] = useState("");
  const rounds = useMemo(() => ({ count: 0 }), []);
  const edit = (event) => {
    setRaw(event.target.value);
    try {
      const next = JSON.parse(event.target.value);
      if (next === null || typeof next !== "object" || Array.isArray(next)) throw new SyntaxError("the arguments must be an object");
      setWrong("");
      onChange(next, true);
    } catch (error) {
      setWrong(error.message);
      onChange(value, false);
    }
  };
  const toForm = () => {
    rounds.count++; // fields hold their own text: they are made anew from the value
    setRaw(null);
    setWrong("");
    onChange(value, true);
  };
  return html`<div class="arguments">
    <div class="switch" role="group" aria-label="How to edit the arguments"><button type="button" aria-pressed=${raw === null} onClick=${toForm}>Form</button>
      <button type="button" aria-pressed=${raw !== null} onClick=${() => setRaw(JSON.stringify(value, null, 2))}>JSON</button></div>
    ${raw === null ? html`<${SchemaForm} key=${rounds.count} schema=${schema} value=${value} onChange=${(next) => onChange(next, true)} />`
      : html`<textarea class="mono json" spellcheck="false" rows="8" aria-label="Arguments as JSON" aria-invalid=${Boolean(wrong)} value=${raw} onInput=${edit}></textarea>${wrong && html`<p class="help bad" role="alert">${show(wrong)}</p>`}`}
  </div>`;
}
