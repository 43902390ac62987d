import { RsmError } from '../../core/errors.ts'
import { type FrontMatter, type FrontMatterFault, parseFrontMatter } from '../../core/scripts/front-matter.ts'

/** How many faults a message names; the others are counted. */
const maxTold = 5
const hint =
  'write it like: # rsm: name=deploy, timeout=5m, param VERSION required "version to deploy", param LEVEL default=info'

export function tellFaults(what: string, faults: readonly FrontMatterFault[]): string {
  const told = faults
    .slice(0, maxTold)
    .map(({ line, column, message }) => `line ${line}, column ${column}: ${message}`)
  if (faults.length > maxTold) told.push(`and ${faults.length - maxTold} more`)
  return `${what}, ${told.join('; ')}`
}

/**
 * What a script says of itself (docs/use/scripts.md). Errors: `usage` with line and column of everything that can't be read.
 * `notice` hears of a line that stands too far down to be read.
 */
export function readFrontMatter(
  text: string,
  what: string,
  notice: (text: string) => void = () => {},
): FrontMatter {
  const { matter, faults, late } = parseFrontMatter(text)
  if (faults.length > 0) throw new RsmError('usage', tellFaults(what, faults), { hint })
  if (late !== null)
    notice(`${what}, line ${late}: # rsm: is read only in the comments above the first command; not here`)
  return matter
}
