import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gatesContract } from '../../contracts/gates.ts'
import { atExit, startPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { startServerProcess } from '../../helpers/servers/server-process.ts'

const postgres = startPostgres(atExit)

gatesContract(test, 'PostgreSQL', async (t) => {
  const keysDir = mkdtempSync(join(tmpdir(), 'rsm-keys-'))
  t.teardown(() => rmSync(keysDir, { recursive: true, force: true }))
  const store = await (await postgres).database()
  return startServerProcess(t, { options: { store, keysDir, serverName: 'a' } })
})
