import type { ExecutionContext, TestFn } from 'ava'
import { showHead } from '../../src/core/audit.ts'
import type { AuditLog, NotedHead } from '../../src/server/storage/ports/audit-log.ts'
import { event } from '../helpers/audit/audit-log.ts'

/** An audit log, and what was noted of it. */
export interface NotedLog {
  audit: AuditLog
  noted: NotedHead
  /** Leaves only the entries up to this one, behind the back of the server, and opens the log anew. */
  cut: (last: number) => Promise<NotedLog>
  /** Puts another entry in the place of the last one, and opens the log anew. */
  replaceLast: () => Promise<NotedLog>
}

/** What every implementation of NotedHead does. */
export function notedHeadContract(test: TestFn, open: (t: ExecutionContext) => Promise<NotedLog>): void {
  test('S11 a log that goes on has all that was noted of it', async (t) => {
    const { audit, noted } = await open(t)
    t.is(await noted.missing(), null, 'nothing was noted')
    for (let n = 0; n < 3; n++) await audit.append(event('a'))
    await noted.note()
    t.is(await noted.missing(), null)
    await audit.append(event('b'))
    t.is(await noted.missing(), null)
  })

  test('S11 a log that was cut at a line, or emptied, is told from one that ended there', async (t) => {
    let log = await open(t)
    for (let n = 0; n < 5; n++) await log.audit.append(event('a'))
    const head = await log.audit.head()
    await log.noted.note()
    const ending = `the head noted was ${showHead(head)}`
    log = await log.cut(head.id - 2)
    t.is(await log.noted.missing(), `the audit log ends at entry ${head.id - 2}, ${ending}`)
    // A file that is opened empty begins with an entry of its own.
    log = await log.cut(0)
    t.regex((await log.noted.missing()) ?? '', new RegExp(`^the audit log ends at entry [01], ${ending}$`))
  })

  test('S11 a log whose noted entry is another one is told from the one that was noted', async (t) => {
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
