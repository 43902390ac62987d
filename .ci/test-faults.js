#!/usr/bin/env node
// Runs every test of a fault to survive (F01 to F19), each named, then those that take long. Parts of it: `--waiting`
// those that take long because they wait, `--busy` those that take long because they work.
// Ends with one line: N passed, N failed. Needs `npm run build`.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

const faults = 'ava.faults.config.js'
const busy = 'ava.long.config.js'
const waiting = 'ava.waiting.config.js'
/** One beside the other, each with its configurations in turn. */
const lanes = process.argv.includes('--waiting')
  ? [[waiting]]
  : process.argv.includes('--busy')
    ? [[busy]]
    : [[waiting], [faults, busy]]
const failure =
  /^ {2}(\d+) (?:tests? failed|tests? remained pending|uncaught exceptions?|unhandled rejections?)/
const total = { passed: 0, failed: 0, skipped: 0 }

async function run(config) {
  const ava = spawn('npx', ['--no-install', 'ava', '--config', config], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(ava, 'close')
  let failed = 0
  for await (const line of createInterface({ input: ava.stdout })) {
    console.log(line)
    if (/^ +✔ /.test(line)) total.passed += 1
    total.skipped += Number(/^ {2}(\d+) tests? skipped/.exec(line)?.[1] ?? 0)
    failed += Number(failure.exec(line)?.[1] ?? 0)
  }
  const [code] = await ended
  total.failed += code === 0 ? failed : Math.max(1, failed)
}

await Promise.all(
  lanes.map(async (lane) => {
    for (const config of lane) await run(config)
  }),
)
if (total.skipped > 0) console.log(`${total.skipped} skipped: a program or a right that they need is missing`)
console.log(`${total.passed} passed, ${total.failed} failed`)
process.exitCode = total.failed === 0 ? 0 : 1
