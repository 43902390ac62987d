import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import test from 'ava'
import { AuditVerifier, verifyAudit } from '../../../src/core/audit.ts'
import { sha256 } from '../../../src/disk/digest.ts'
import { auditDirectory, event, openLog } from '../../helpers/audit/audit-log.ts'

const writerProgram = fileURLToPath(new URL('../../fixtures/audit-writer.js', import.meta.url))
const rounds = 8

/** Runs the writer and kills it after this number of acknowledged entries; returns the last one, as `ID HASH`. */
async function writeAndKill(directory: string, entries: number): Promise<string> {
  const child = spawn(process.execPath, [writerProgram, directory, '8'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exit = once(child, 'exit')
  let last = ''
  let seen = 0
  for await (const line of createInterface({ input: child.stdout })) {
    last = line
    if (++seen === entries) child.kill('SIGKILL')
  }
  await exit
  return last
}

test('F01 every acknowledged audit entry survives kill -9 during appends, and the hash chain is valid', async (t) => {
  const directory = await auditDirectory(t)
  const noted: string[] = []
  for (let round = 0; round < rounds; round++) noted.push(await writeAndKill(directory, 40 + round * 17))
  const log = await openLog(directory)
  t.teardown(() => log.close())
  const after = await log.append(event('after'))
  for (const [round, line] of noted.entries()) {
    const [id, hash = ''] = line.split(' ')
    const verifier = new AuditVerifier(sha256, { id: Number(id), hash })
    t.is(await verifyAudit(log.raw(), verifier), null, `the head noted in round ${round}`)
    t.is(verifier.entries, after.id)
  }
})
