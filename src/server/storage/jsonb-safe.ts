/** U+0000 and halves of surrogate pairs are in no text of PostgreSQL … */
const unfit = /[\0\p{Surrogate}]/gu
/** … and JSON that has one of them has such an escape. */
const maybeUnfit = /\\u(?:0000|d[89a-f])/
const fit = (_: string, value: unknown): unknown =>
  typeof value === 'string' ? value.replaceAll(unfit, '\ufffd') : value

type Replacer = (key: string, value: unknown) => unknown

/** As JSON that PostgreSQL takes as `jsonb`: what it takes in no text is U+FFFD. */
export function jsonbSafe(value: unknown, replacer?: Replacer): string {
  const json = JSON.stringify(value, replacer)
  if (!maybeUnfit.test(json)) return json
  return JSON.stringify(JSON.parse(json), fit)
}
