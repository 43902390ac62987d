import { spawn } from 'node:child_process'
import type { ExecutionContext } from 'ava'

/** Says how often it read, and what was not one number from the first line to the last. */
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

/** A text of which any part shows that it is one. */
export const wholeText = (n: number, lines: number): Buffer => Buffer.from(`${n}\n`.repeat(lines))

/** Reads a file that always holds a whole text, in a loop in a process of its own; the answer ends it, and says what it saw: `reads N` and a line for each part. */
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
