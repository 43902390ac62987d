import { nearest } from '../../core/text/nearest.ts'

/** Whether a word may be taken for another: in a short one a slip or two make any other word. */
function isLike(typed: string, meant: string): boolean {
  const a = typed.toLowerCase()
  const b = meant.toLowerCase()
  if (a[0] === b[0]) return Math.min(a.length, b.length) > 2 || Math.abs(a.length - b.length) < 2
  // People seldom miss the first letter: if it differs, the rest has to agree, or the first two letters are swapped.
  return a.slice(1) === b.slice(1) || (a[0] === b[1] && a[1] === b[0]) || a === b.slice(1) || b === a.slice(1)
}

/** The known word that was probably meant. No suggestion is better than a wrong one. */
export function near(typed: string, known: readonly string[]): string | undefined {
  const found = nearest(typed, known)
  return found !== undefined && isLike(typed, found) ? found : undefined
}

/** The command that the first words of a line probably mean; `ids` are those that exist (`hosts:list`). */
export function commandMeant(
  ids: readonly string[],
  [first = '', second]: readonly string[],
): string | undefined {
  const topic = near(first, [...new Set(ids.map((id) => id.split(':')[0] ?? ''))])
  if (topic === undefined || ids.includes(topic)) return topic
  const verbs = ids.flatMap((id) => (id.startsWith(`${topic}:`) ? [id.slice(topic.length + 1)] : []))
  const verb = second === undefined || second.startsWith('-') ? undefined : near(second, verbs)
  if (verb !== undefined) return `${topic} ${verb}`
  // If the topic was typed correctly, only the verb is in question. It may be a command that needs no topic: `tasks logs`.
  if (topic !== first) return topic
  const commands = ids.filter((id) => !id.includes(':'))
  return second === undefined ? undefined : near(second, commands)
}
