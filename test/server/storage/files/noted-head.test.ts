import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { auditFileName } from '../../../../src/server/storage/files/audit-file.ts'
import { createNotedHead } from '../../../../src/server/storage/files/audit-log.ts'
import { type NotedLog, notedHeadContract } from '../../../contracts/noted-head.ts'
import { auditDirectory, event, openLog } from '../../../helpers/audit/audit-log.ts'

async function open(t: ExecutionContext, directory: string): Promise<NotedLog> {
  const audit = await openLog(directory)
  t.teardown(() => audit.close())
  const log = join(directory, auditFileName)
  async function cut(last: number): Promise<NotedLog> {
    await audit.close()
    const lines = (await readFile(log, 'utf8')).split('\n')
    await writeFile(
      log,
      lines
        .slice(0, last)
        .map((line) => `${line}\n`)
        .join(''),
    )
    return open(t, directory)
  }
  return {
    audit,
    noted: createNotedHead(join(directory, 'audit.head'), audit),
    cut,
    async replaceLast() {
      const { id } = await audit.head()
      const shorter = await cut(id - 1)
      await shorter.audit.append(event('another'))
      return shorter
    },
  }
}

notedHeadContract(test, async (t) => open(t, await auditDirectory(t)))
