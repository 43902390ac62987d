import type { FieldFault } from '../errors.ts'
import { foldNodeset } from '../selector/nodeset.ts'
import { isUnknownName } from './nearest.ts'

/** Count that a server adds if it found more unknown names than it lists. */
const isRest = (message: string) => /^and \d+ more\b/.test(message)

export function areUnknownNames(faults: readonly FieldFault[]): boolean {
  return (
    faults.some(({ message }) => isUnknownName(message)) &&
    faults.every(({ message }) => isUnknownName(message) || isRest(message))
  )
}

/** Longer lists of hosts are folded, because they are a missing range rather than typing errors. */
const mostSuggested = 2

function listed(kind: string, names: readonly string[]): string {
  const bare = names.map((name) => name.replace(/ \(did you mean [^ ()]+\?\)$/, ''))
  const isRange =
    kind.endsWith('host') && names.length > mostSuggested && bare.every((name) => /^[\w.-]+$/.test(name))
  return isRange ? foldNodeset(bare) : names.join(', ')
}

/** Groups unknown names by kind: `no such host: web4, web[6-9]; no such cluster: db`. */
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
  return [...[...kinds].map(([kind, names]) => `${kind}: ${listed(kind, names)}`), ...rest].join('; ')
}
