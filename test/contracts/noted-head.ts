import type { ExecutionContext, TestFn } from 'ava'
import { showHead } from '../../src/core/audit.ts'
import type { AuditLog, NotedHead } from '../../src/server/storage/ports/audit-log.ts'
import { event } from '../helpers/audit/audit-log.ts'

/** An audit log, and its noted head. */
export interface NotedLog {
  audit: AuditLog
  noted: NotedHead
  /** Leaves only the entries up to this one, unnoticed by the server, and reopens the log. */
  cut: (last: number) => Promise<NotedLog>
  /** Replaces the last entry by another one, and reopens the log. */
  replaceLast: () => Promise<NotedLog>
}

/** Suite for every implementation of NotedHead. */
export function notedHeadContract(test: TestFn, open: (t: ExecutionContext) => Promise<NotedLog>): void {
  test('S11 a log that is only appended to has all of the noted entries', async (t) => {
    const { audit, noted } = await open(t)
    t.is(await noted.missing(), null, 'nothing was noted')
    for (let n = 0; n < 3; n++) await audit.append(event('a'))
    await noted.note()
    t.is(await noted.missing(), null)
    await audit.append(event('b'))
    t.is(await noted.missing(), null)
  })

  test('S11 a log that was cut at a line, or emptied, is distinguished from one that ended there', async (t) => {
    let log = await open(t)
    for (let n = 0; n < 5; n++) await log.audit.append(event('a'))
    const head = await log.audit.head()
    await log.noted.note()
    const ending = `the head noted was ${showHead(head)}`
    log = await log.cut(head.id - 2)
    t.is(await log.noted.missing(), `the audit log ends at entry ${head.id - 2}, ${ending}`)
    // A file that is empty when opened gets a first entry of its own.
    log = await log.cut(0)
    t.regex((await log.noted.missing()) ?? '', new RegExp(`^the audit log ends at entry [01], ${ending}$`))
  })

  test('S11 a log whose noted entry was replaced is distinguished from the original', async (t) => {
    const { audit, noted, replaceLast } = await open(t)
    for (let n = 0; n < 3; n++) await audit.append(event('a'))
    const head = await audit.head()
    await noted.note()
    const replaced = await replaceLast()
    t.regex(
      (await replaced.noted.missing()) ?? '',
      new RegExp(`^entry ${head.id} of the audit log is not the one noted as ${showHead(head)}`),
    )
  })
}
