import { spawn } from 'node:child_process'
import type { ExecutionContext } from 'ava'

/** Prints the number of reads, and every text whose lines are not all the same number. */
const reader = `const { readFileSync } = require('node:fs')
const lines = Number(process.argv[2])
let reads = 0
process.on('SIGTERM', () => { console.log('reads', reads); process.exit() })
const look = () => {
  const text = readFileSync(process.argv[1], 'utf8')
  const first = text.slice(0, text.indexOf('\\n') + 1)
  if (first === '' || text !== first.repeat(lines)) console.log('a part of', text.length)
  reads += 1
  setTimeout(look, 1)
}
look()`

/** A text of equal lines, so that a mix of two versions is noticed. */
export const wholeText = (n: number, lines: number): Buffer => Buffer.from(`${n}\n`.repeat(lines))

/**
 * Reads a file in a loop in a process of its own, and checks that it always holds a whole text. The returned function ends it,
 * and returns its output: `reads N` and a line for each partial text.
 */
export function readInLoop(t: ExecutionContext, path: string, lines: number): () => Promise<string> {
  const child = spawn(process.execPath, ['-e', reader, path, String(lines)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  let said = ''
  child.stdout.on('data', (piece: Buffer) => {
    said += piece.toString()
  })
  const closed = new Promise((resolve) => child.once('close', resolve))
  return async () => {
    child.kill('SIGTERM')
    await closed
    return said
  }
}
