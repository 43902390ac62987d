import { execFileSync, spawn } from 'node:child_process'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import test from 'ava'
import { openOutputFile } from '../../../src/cli/output/output-file.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'

// Runs in its own process: a Node thread that ends closes the descriptors it opened, even those that a socket has closed before.
test('a pipe is written as fast as its reader reads, and a pipe without a reader is reported', async (t) => {
  const path = join(temporaryDirectory(t), 'pipe')
  execFileSync('mkfifo', [path])
  const reader = spawn('sh', ['-c', 'sleep 0.3; wc -c < "$0"', path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const file = openOutputFile(path, true, 60_000)
  for (let count = 0; count < 30; count++) await file.sink.write('x'.repeat(10_000))
  await file.finish()
  t.is((await text(reader.stdout)).trim(), '300000')
  t.throws(() => openOutputFile(path, true, 100), { message: /the pipe has no reader/ })
})
