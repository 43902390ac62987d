import { invalid } from '../errors.ts'
import { compareNatural } from './natural-order.ts'
import { maxIndexDigits } from './nodeset-pattern.ts'
import { parseSelector } from './parse.ts'

/** A product of index sets: `[['1','2'],['01']]` of `rack%sn%s` is rack1n01 and rack2n01. Sets are sorted. */
type Block = readonly (readonly string[])[]

/** ClusterShell's order of indexes: shorter first, so that padded and unpadded ones stay apart. */
function compareIndexes(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length
  if (a === b) return 0
  return a < b ? -1 : 1
}

/** `08,09,10` → `08-10`: padded indexes form runs of equal length, without unpadded ones. */
function foldIndexes(indexes: readonly string[]): string {
  const runs: string[] = []
  let first = indexes[0] ?? ''
  let last = first
  const close = (): void => void runs.push(first === last ? first : `${first}-${last}`)
  for (const index of indexes.slice(1)) {
    const padded = first.length > 1 && first.startsWith('0')
    const alike = padded ? index.length === first.length : index.length === 1 || !index.startsWith('0')
    if (!alike || Number(index) !== Number(last) + 1) {
      close()
      first = index
    }
    last = index
  }
  close()
  return runs.join(',')
}

function mergeAxis(blocks: readonly Block[], axis: number): Block[] {
  const groups = new Map<string, { block: Block; indexes: string[] }>()
  for (const block of blocks) {
    const key = block.map((set, at) => (at === axis ? '' : set.join(','))).join(';')
    const group = groups.get(key)
    if (group) group.indexes.push(...(block[axis] ?? []))
    else groups.set(key, { block, indexes: [...(block[axis] ?? [])] })
  }
  return [...groups.values()].map(({ block, indexes }) => block.with(axis, indexes.sort(compareIndexes)))
}

const sizeOf = (block: Block): number => block.reduce((product, set) => product * set.length, 1)

/** ClusterShell's order of blocks: the largest first, then by axis the longest set, then the lowest ends. */
function compareBlocks(a: Block, b: Block): number {
  const size = sizeOf(b) - sizeOf(a)
  if (size !== 0) return size
  for (let axis = 0; axis < a.length; axis++) {
    const left = a[axis] ?? []
    const right = b[axis] ?? []
    if (left.length !== right.length) return right.length - left.length
    for (const end of [0, -1]) {
      const one = left.at(end) ?? ''
      const other = right.at(end) ?? ''
      if (one !== other) return one < other ? -1 : 1
    }
  }
  return 0
}

/**
 * Few blocks that cover exactly these index vectors. Merges axis by axis, starting at each in turn, and keeps the
 * best: linear in the names, whereas ClusterShell compares every pair.
 */
function foldVectors(vectors: readonly (readonly string[])[]): Block[] {
  const dimensions = vectors[0]?.length ?? 0
  const singles: Block[] = vectors.map((vector) => vector.map((index) => [index]))
  let best = singles
  for (let start = dimensions - 1; start >= 0; start--) {
    let blocks = singles
    for (let step = 0; step < dimensions; step++)
      blocks = mergeAxis(blocks, (start - step + dimensions) % dimensions)
    if (start === dimensions - 1 || blocks.length < best.length) best = blocks
  }
  return best.sort(compareBlocks)
}

const digits = /\d+/g

/** `rack1n01` → literals `rack`, `n`, `` around the indexes `1`, `01`; numbers too long to count with stay literal. */
function cut(name: string): { literals: string[]; indexes: string[] } {
  const literals: string[] = []
  const indexes: string[] = []
  let from = 0
  for (const match of name.matchAll(digits)) {
    if (match[0].length > maxIndexDigits) continue
    literals.push(name.slice(from, match.index))
    indexes.push(match[0])
    from = match.index + match[0].length
  }
  literals.push(name.slice(from))
  return { literals, indexes }
}

/** Folds names like `nodeset -f`: `web1,web2,db1` → `db1,web[1-2]`. The empty list gives the empty text. */
export function foldNodeset(names: Iterable<string>): string {
  const patterns = new Map<string, { literals: string[]; vectors: string[][] }>()
  for (const name of new Set(names)) {
    const { literals, indexes } = cut(name)
    // ClusterShell sorts by this text, with `%s` for an index.
    const key = literals.join('%s')
    const pattern = patterns.get(key)
    if (pattern) pattern.vectors.push(indexes)
    else patterns.set(key, { literals, vectors: [indexes] })
  }
  const folded: string[] = []
  for (const [, { literals, vectors }] of [...patterns].sort(([a], [b]) => (a < b ? -1 : 1)))
    for (const block of foldVectors(vectors)) {
      const sets = block.map((set) => (set.length === 1 ? (set[0] ?? '') : `[${foldIndexes(set)}]`))
      folded.push(literals.map((literal, at) => literal + (sets[at] ?? '')).join(''))
    }
  return folded.join(',')
}

/**
 * Evaluates a node set to names in natural order, without duplicates (ignoring case). Throws `invalid` for a syntax
 * error, and for groups and wildcards, which only a server can resolve.
 */
export function expandNodeset(text: string, field = 'selector'): string[] {
  let names = new Map<string, string>()
  for (const term of parseSelector(text, field).terms) {
    if (term.kind !== 'names')
      throw invalid([
        { field, message: 'a node set holds names only, no groups (@) and no wildcards (*, ?)' },
      ])
    const right = new Map(term.names.map((name) => [name.toLowerCase(), name]))
    if (term.operator === '&') names = new Map([...names].filter(([key]) => right.has(key)))
    else
      for (const [key, name] of right) {
        const present = names.has(key)
        if (term.operator === ',' ? !present : term.operator === '^' && !present) names.set(key, name)
        else if (term.operator !== ',') names.delete(key)
      }
  }
  return [...names.values()].sort(compareNatural)
}
