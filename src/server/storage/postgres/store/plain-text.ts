/** What PostgreSQL takes into no text: U+0000 and halves of surrogate pairs; and U+FFFF, by which they are told. */
const unfit = /[\0\uffff\p{Surrogate}]/u
const everyUnfit = /[\0\uffff\p{Surrogate}]/gu

/** U+FFFF, then a noncharacter for each of its four digits: no text that people write holds them. */
const told = (character: string): string =>
  `\uffff${character
    .charCodeAt(0)
    .toString(16)
    .padStart(4, '0')
    .replaceAll(/./g, (digit) => String.fromCharCode(0xfdd0 + Number.parseInt(digit, 16)))}`

/** Text that PostgreSQL takes, another one for each: for what is compared, not for what is shown. */
export const plainText = (text: string): string =>
  unfit.test(text) ? text.replaceAll(everyUnfit, told) : text

/** The same for all text in a value of JSON. */
export function plainJson(value: unknown): unknown {
  if (typeof value === 'string') return plainText(value)
  if (Array.isArray(value)) return value.map(plainJson)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, held]) => [plainText(key), plainJson(held)]))
}
