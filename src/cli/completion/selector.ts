/** What a selector (contract §8) can go on with where it ends. */
export type SelectorEnd =
  /** Within brackets, or behind a wildcard: nothing is known. */
  | { readonly is: 'nothing' }
  | { readonly is: 'host'; readonly lead: string }
  /** `@…` up to its first colon. */
  | { readonly is: 'group'; readonly lead: string }
  /** Behind `@key:`; `key` in lower case, as `tag:role` where it was written `@tag:role:`. */
  | { readonly is: 'member'; readonly lead: string; readonly key: string }

const operators = ',!&^'

/** Cuts a selector where its last name begins: `lead` is all before that. */
export function selectorEnd(text: string): SelectorEnd {
  let depth = 0
  let start = 0
  for (let at = 0; at < text.length; at++) {
    const sign = text.charAt(at)
    if (sign === '[') depth++
    else if (sign === ']') depth--
    else if (depth === 0 && operators.includes(sign)) start = at + 1
  }
  while (text[start] === ' ') start++
  const name = text.slice(start)
  if (/[[\]*?]/.test(name)) return { is: 'nothing' }
  if (!name.startsWith('@')) return { is: 'host', lead: text.slice(0, start) }
  const [, key, tag] = /^@(tag:([^:]*)|[^:]*):/i.exec(name) ?? []
  if (key === undefined) return { is: 'group', lead: text.slice(0, start) }
  const end = start + key.length + 2
  return {
    is: 'member',
    lead: text.slice(0, end),
    key: tag === undefined ? key.toLowerCase() : `tag:${tag.toLowerCase()}`,
  }
}
