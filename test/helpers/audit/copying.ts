import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import type { AuditCopy } from '../../../src/server/audit/copy/audit-copy.ts'
import { openAuditCopy } from '../../../src/server/audit/copy/open-audit-copy.ts'
import { systemClock } from '../../../src/server/clock.ts'
import type { Log } from '../../../src/server/log.ts'
import type { AuditLog } from '../../../src/server/seams/audit-log.ts'
import { until } from '../until.ts'
import { auditDirectory, event, openLog } from './audit-log.ts'

export interface Copying {
  readonly log: AuditLog
  /** Where that is on disk. */
  readonly logFile: string
  /** What the server's own log says of the copy. */
  readonly said: string[]
  /** Begins a copy, as a start of the server does. */
  readonly copyTo: (target: string, ca?: string[]) => AuditCopy
  readonly append: (count: number) => Promise<void>
  /** Resolves when the copy has all that is in the log. */
  readonly upToDate: (copy: AuditCopy) => Promise<void>
  /** The lines of the log. */
  readonly lines: () => Promise<string[]>
}

/** An audit log of a store, and copies of it. */
export async function copying(t: ExecutionContext): Promise<Copying> {
  const directory = await auditDirectory(t)
  const path = await auditDirectory(t)
  const log = await openLog(join(directory, 'audit'))
  t.teardown(() => log.close())
  const said: string[] = []
  const say = (_fields: unknown, message = '') => said.push(message)
  const own = { debug: say, info: say, warn: say, error: say } as unknown as Log
  return {
    log,
    logFile: join(directory, 'audit', 'audit.log'),
    said,
    copyTo(target, ca) {
      const copy = openAuditCopy({ path, audit: log, clock: systemClock, log: own }, { target, ca })
      t.teardown(() => copy.close())
      return copy
    },
    async append(count) {
      await Promise.all(Array.from({ length: count }, (_, at) => log.append(event(`step.${at}`))))
    },
    async upToDate(copy) {
      const { id } = await log.head()
      await until('the copy is up to date', () => copy.status.copied >= id && copy.status.error === null)
    },
    async lines() {
      const blocks: Buffer[] = []
      for await (const block of log.raw()) blocks.push(block)
      return Buffer.concat(blocks).toString('utf8').trimEnd().split('\n')
    },
  }
}
