/** Ids are below 2^32 (contract §3: numbers that count hosts). */
const depth = 32

/** The block of 2^`size` ids that holds this one, by its number in a binary tree. */
const blockOf = (id: number, size: number): number => 2 ** (depth - size) + Math.floor(id / 2 ** size)

/** The blocks of which a run of ids is made: few, however long it is. */
function* blocksOfRun(first: number, last: number): Generator<number> {
  let at = first
  while (at <= last) {
    let size = 0
    while (size < depth && at % 2 ** (size + 1) === 0 && at + 2 ** (size + 1) - 1 <= last) size++
    yield blockOf(at, size)
    at += 2 ** size
  }
}

/**
 * A folded set (core/tasks/id-set.ts) as numbers of blocks, which an inverted index can hold: an id is in the set if one of
 * the blocks that hold it is.
 */
export function blocksOfSet(folded: string): number[] {
  if (folded === '') return []
  return folded.split(',').flatMap((run) => {
    const [first, last = first] = run.split('-').map(Number)
    return first === undefined || last === undefined ? [] : [...blocksOfRun(first, last)]
  })
}

/** All blocks that hold an id; none for what is no id. */
export function blocksWith(id: number): number[] {
  if (!Number.isInteger(id) || id < 0 || id >= 2 ** depth) return []
  return Array.from({ length: depth + 1 }, (_, size) => blockOf(id, size))
}
