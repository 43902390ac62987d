import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import { gatesContract, killedGatesContract } from '../../contracts/gates.ts'
import { sharedPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { startServerProcess } from '../../helpers/servers/server-process.ts'

const postgres = sharedPostgres()

async function start(t: ExecutionContext) {
  const keysDir = mkdtempSync(join(tmpdir(), 'rsm-keys-'))
  t.teardown(() => rmSync(keysDir, { recursive: true, force: true }))
  const store = await (await postgres).database()
  return startServerProcess(t, { options: { store, keysDir, serverName: 'a' } })
}

gatesContract(test, 'PostgreSQL', start)
killedGatesContract(test, 'PostgreSQL', start)
