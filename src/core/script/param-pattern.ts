import { RE2JS } from 're2js'
import { BoundedMap } from '../bounded-map.ts'
import type { DeclaredParam } from './front-matter.ts'

/**
 * Instructions that one pattern may compile to, and all of a script. What they cost is this times the value's length: some
 * hundredths of a second at the worst, in which nobody else is answered.
 */
const largest = 500
const largestTogether = 1_000
/** Instructions that may have to be made before they can be counted. */
const largestEstimated = 20_000
/** Patterns of one script. */
const mostPatterns = 20
/** Classes of Unicode in one pattern: each is a table of hundreds of ranges. */
const mostUnicodeClasses = 2
/** Compiled patterns that are kept: they are few and small, and every execution needs those of its script. */
const mostKept = 100
/** Characters of a value that is matched. */
const longestValue = 256

type Patterned = Pick<DeclaredParam, 'name' | 'pattern' | 'default'>

const kept = new BoundedMap<string, RE2JS>(mostKept)

function compiled(pattern: string): RE2JS {
  const found = kept.get(pattern) ?? RE2JS.compile(pattern)
  kept.set(pattern, found)
  return found
}

/** RE2 takes linear time, whatever the pattern (https://github.com/google/re2). */
export function fitsPattern(pattern: string, value: string): boolean {
  return value.length <= longestValue && compiled(pattern).matches(value)
}

/** No less than the instructions that the counts of a pattern make of it; those of groups may stand within each other. */
function estimatedSize(pattern: string): number {
  let beside = 0
  let within = 1
  for (const { index, 1: least, 2: most } of pattern.matchAll(/\{(\d+)(?:,(\d*))?\}/g)) {
    const count = Math.max(1, Number(least), Number(most ?? 0))
    if (/[)}?*+]/.test(pattern.charAt(index - 1))) within *= count
    else beside += count
  }
  return (pattern.length + beside) * within
}

/** Why a pattern is not compiled: its size says nothing of what that takes, for a class is one instruction. */
function costFault(pattern: string): string | null {
  if (estimatedSize(pattern) > largestEstimated) return 'is too large: count less far in its {…}'
  if ((pattern.match(/\\[pP]/g) ?? []).length > mostUnicodeClasses)
    return `has more than ${mostUnicodeClasses} of \\p and \\P: name fewer classes`
  if (/\(\?[a-zA-Z-]*i/.test(pattern) && /[^\0-\x7f]|\\[pP]|\\x\{/.test(pattern))
    return 'has (?i) with \\p, \\P, \\x{…} or letters beyond ASCII: take one of the two'
  return null
}

function faultOf({ pattern, default: value }: Patterned, room: number): [fault: string | null, size: number] {
  if (pattern === null) return [null, 0]
  const cost = costFault(pattern)
  if (cost !== null) return [cost, 0]
  try {
    const size = compiled(pattern).programSize()
    if (size > largest) return ['is too large: count less far in its {…}', size]
    const fits = size > room || value === null || fitsPattern(pattern, value)
    return [fits ? null : 'does not match the default', size]
  } catch (error) {
    return [`is not valid in RE2: ${error instanceof Error ? error.message : String(error)}`, 0]
  }
}

/** What is wrong with the patterns that a script declares, each as a sentence; past a bound, no more are looked at. */
export function patternFaults(declared: readonly Patterned[]): string[] {
  const patterned = declared.filter(({ pattern }) => pattern !== null)
  if (patterned.length > mostPatterns)
    return [`a script has at most ${mostPatterns} patterns, not ${patterned.length}`]
  const faults: string[] = []
  let room = largestTogether
  for (const param of patterned) {
    const [fault, size] = faultOf(param, room)
    if (fault !== null) faults.push(`the pattern of ${param.name} ${fault}`)
    room -= size
    if (size > largest) break
    if (room < 0) {
      faults.push('the patterns are too large together: count less far in their {…}')
      break
    }
  }
  return faults
}
