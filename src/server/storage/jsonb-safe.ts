/** Characters that PostgreSQL stores in no text: U+0000 and lone surrogates. */
const unfit = /[\0\p{Surrogate}]/gu
/** Escapes that JSON has if it contains one of them. */
const maybeUnfit = /\\u(?:0000|d[89a-f])/
const fit = (_: string, value: unknown): unknown =>
  typeof value === 'string' ? value.replaceAll(unfit, '\ufffd') : value

type Replacer = (key: string, value: unknown) => unknown

/** JSON for a `jsonb` column; characters that PostgreSQL rejects become U+FFFD. */
export function jsonbSafe(value: unknown, replacer?: Replacer): string {
  const json = JSON.stringify(value, replacer)
  if (!maybeUnfit.test(json)) return json
  return JSON.stringify(JSON.parse(json), fit)
}
