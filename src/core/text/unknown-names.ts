import type { FieldFault } from '../errors.ts'
import { isUnknownName } from './nearest.ts'

/** What a server adds when it knows more unknown names than it lists. */
const isRest = (message: string) => /^and \d+ more\b/.test(message)

/** Whether nothing but names that do not exist was wrong. */
export function areUnknownNames(faults: readonly FieldFault[]): boolean {
  return (
    faults.some(({ message }) => isUnknownName(message)) &&
    faults.every(({ message }) => isUnknownName(message) || isRest(message))
  )
}

/** Names of one kind under one heading: `no such host: web4, web5 (did you mean web1?); no such cluster: db`. */
export function foldUnknownNames(faults: readonly FieldFault[]): string {
  const kinds = new Map<string, string[]>()
  const rest: string[] = []
  for (const { message } of faults) {
    const at = message.indexOf(': ')
    if (at === -1 || isRest(message)) {
      rest.push(message)
      continue
    }
    const kind = message.slice(0, at)
    kinds.set(kind, [...(kinds.get(kind) ?? []), message.slice(at + 2)])
  }
  return [...[...kinds].map(([kind, names]) => `${kind}: ${names.join(', ')}`), ...rest].join('; ')
}
