import type { ExecutionContext } from 'ava'
import { systemClock } from '../../../../src/disk/clock.ts'
import { createLog } from '../../../../src/disk/log.ts'
import { createNotedHead, openAuditLog } from '../../../../src/server/storage/postgres/audit-log.ts'
import type { Database } from '../../../../src/server/storage/postgres/connection/database.ts'
import { type NotedLog, notedHeadContract } from '../../../contracts/noted-head.ts'
import { event } from '../../../helpers/audit/audit-log.ts'
import { openDatabase } from '../../../helpers/servers/open-database.ts'
import {
  type SharedPostgres,
  sharedPostgres,
  postgresTest as test,
} from '../../../helpers/servers/postgres.ts'

let postgres: Promise<SharedPostgres> | undefined

async function open(database: Database): Promise<NotedLog> {
  const audit = await openAuditLog({
    database,
    storeId: 'store-1',
    clock: systemClock,
    log: createLog('ERROR'),
  })
  return {
    audit,
    noted: createNotedHead(database, audit),
    async cut(last) {
      await database.ask('api', 'delete from rsm.audit where id > $1', [last])
      return open(database)
    },
    async replaceLast() {
      await audit.append(event('another'))
      await database.ask(
        'api',
        `with other as (delete from rsm.audit where id = (select max(id) from rsm.audit) returning id, line)
         update rsm.audit a set line = replace(o.line, '"id":' || o.id, '"id":' || a.id) from other o where a.id = o.id - 1`,
      )
      return open(database)
    },
  }
}

async function opened(t: ExecutionContext): Promise<NotedLog> {
  postgres ??= sharedPostgres()
  return open(openDatabase(t, await (await postgres).database()))
}

notedHeadContract(test, opened)
