import pg from 'pg'
import { untilFinal } from '../execution.ts'
import { inTurn, ratioRow } from '../measure.ts'
import { registerAgents } from '../rest/register.ts'
import type { Row } from '../row.ts'
import { startLargeFleet } from './fleet.ts'
import { startShared } from './shared.ts'

const agents = 2000
const smallTasks = 6
const rounds = 3
const heartbeatInterval = 30_000
const small = 'web1.example.org'
const tenth = `web[0-${agents / 10 - 1}].example.org`

/**
 * Processor time of PostgreSQL per host: a task on all agents vs one on a tenth of them (reliability L11). PostgreSQL makes its
 * plans while the table of executions is empty. Fails if an agent is sent an execution twice.
 */
export async function benchSending(): Promise<Row[]> {
  const shared = await startShared(1)
  const ends: (() => void | Promise<void>)[] = [() => shared.stop()]
  try {
    const [server] = shared.servers
    if (!server) throw new Error('no server')
    const database = new pg.Client({ connectionString: shared.store })
    await database.connect()
    ends.push(() => database.end())
    const registered = await registerAgents(server, agents)
    const fleet = startLargeFleet([server.url], registered, heartbeatInterval)
    ends.push(() => fleet.stop())
    await fleet.until(({ open }) => open === agents)
    // Only the vacuum below updates the statistics of the table.
    await database.query('alter table rsm.executions set (autovacuum_enabled = off)')
    /** Milliseconds of PostgreSQL's processor time per host. */
    const costOf = async (selector: string, hosts: number) => {
      const before = shared.used().postgres
      await untilFinal(server, selector)
      return ((shared.used().postgres - before) * 1000) / hosts
    }
    const afterVacuum = async () => {
      await database.query('vacuum analyze rsm.executions')
      for (let task = 0; task < smallTasks; task++) await untilFinal(server, small)
      return costOf('@*', agents)
    }
    const measured = await inTurn(rounds, afterVacuum, () => costOf(tenth, agents / 10))
    const { twice } = fleet.state
    if (twice > 0) throw new Error(`agents were sent ${twice} executions that they already had`)
    const name = `PostgreSQL: processor time per host, a task on ${agents} agents after a vacuum without executions, vs on a tenth`
    return [ratioRow(name, 'ms', measured, { atMost: 1.5 })]
  } finally {
    for (const end of ends.toReversed()) await end()
  }
}
