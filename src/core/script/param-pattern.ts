import { RE2JS } from 're2js'
import type { DeclaredParam } from './front-matter.ts'

/**
 * Instructions that one pattern may compile to, and all of a script. What they cost is this times the value's length: some
 * hundredths of a second at the worst, in which nobody else is answered.
 */
const largest = 500
const largestTogether = 1_000
/** Characters of a value that is matched. */
const longestValue = 256

type Patterned = Pick<DeclaredParam, 'name' | 'pattern' | 'default'>

/** RE2 takes linear time, whatever the pattern (https://github.com/google/re2). */
export function fitsPattern(pattern: string, value: string): boolean {
  return value.length <= longestValue && RE2JS.compile(pattern).matches(value)
}

function faultOf(pattern: string, size: number, value: string | null): string | null {
  if (size > largest) return 'is too large: count less far in its {…}'
  if (value !== null && !fitsPattern(pattern, value)) return 'does not match the default'
  return null
}

/** What is wrong with the patterns that a script declares, each as a sentence. */
export function patternFaults(declared: readonly Patterned[]): string[] {
  const faults: string[] = []
  let together = 0
  for (const { name, pattern, default: value } of declared) {
    if (pattern === null) continue
    try {
      const size = RE2JS.compile(pattern).programSize()
      together += size
      const fault = faultOf(pattern, size, value)
      if (fault !== null) faults.push(`the pattern of ${name} ${fault}`)
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      faults.push(`the pattern of ${name} is none of RE2: ${why}`)
    }
  }
  if (together > largestTogether)
    faults.push('the patterns are too large together: count less far in their {…}')
  return faults
}
