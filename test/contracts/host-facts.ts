import type { ExecutionContext, TestFn } from 'ava'
import { register, takeFacts } from '../../src/server/services/registration.ts'
import type { AgentCaller } from '../../src/server/storage/ports/caller.ts'
import type { Insides } from '../helpers/servers/services.ts'

const facts = {
  ipAddresses: ['10.0.0.1', '192.168.0.1'],
  os: 'linux',
  distribution: 'Debian GNU/Linux 12 (bookworm)',
  kernel: '6.1.0',
  arch: 'x64',
  cpuCores: 2,
  memoryMB: 2048,
  diskGB: 20,
}

async function joined({ context, admin }: Insides): Promise<AgentCaller> {
  const input = { agentId: 'a1', hostname: 'web1', ...facts }
  const { hostId } = await register(context, admin, input, '127.0.0.1', 'token')
  return { type: 'agent', hostId, agentId: 'a1', tokenHash: 'token' }
}

/** Facts of a host, as its agent reports them (contract §3). */
export function hostFactsContract(
  test: TestFn,
  name: string,
  open: (t: ExecutionContext) => Promise<Insides>,
): void {
  test(`${name} facts of a host: 3,000 heartbeats without a change of facts write nothing`, async (t) => {
    const insides = await open(t)
    const { context } = insides
    const agent = await joined(insides)
    const before = await context.store.get('hosts', agent.hostId)
    let asked = 0
    const mayChange = () => ++asked > 0
    const told = Array.from({ length: 3000 }, () => takeFacts(context, agent, { ...facts }, mayChange))
    t.deepEqual(new Set(await Promise.all(told)), new Set([false]))
    t.deepEqual(await context.store.get('hosts', agent.hostId), before)
    t.is(asked, 0)
  })

  test(`${name} facts of a host: reported facts replace stored ones; unreported facts, name and tags stay`, async (t) => {
    const insides = await open(t)
    const { context, services } = insides
    const agent = await joined(insides)
    await services.hosts.update(agent.hostId, { hostname: 'shop', tags: { role: 'web' } })
    const { diskGB: _, ...others } = { ...facts, kernel: '6.12.0', ipAddresses: ['10.0.0.7', '192.168.0.1'] }
    t.true(await takeFacts(context, agent, others, () => true))
    const host = await services.hosts.get(agent.hostId)
    t.deepEqual(host.systemInfo, { ...others, diskGB: 20 })
    t.like(host, { hostname: 'shop', ip: '10.0.0.7', tags: { role: 'web' } })
  })

  test(`${name} facts of a host: an address stays if a user set it or stored credentials are sent to it`, async (t) => {
    const insides = await open(t)
    const { context, services } = insides
    const agent = await joined(insides)
    const moved = (to: string) => takeFacts(context, agent, { ipAddresses: [to] }, () => true)
    await services.hosts.update(agent.hostId, { authType: 'PASSWORD', password: 'secret of web1' })
    t.true(await moved('10.0.0.8'))
    t.is((await services.hosts.get(agent.hostId)).ip, '10.0.0.1')
    await services.hosts.update(agent.hostId, { ip: '203.0.113.5', password: null })
    t.true(await moved('10.0.0.9'))
    const { ip, systemInfo } = await services.hosts.get(agent.hostId)
    t.deepEqual([ip, systemInfo?.ipAddresses], ['203.0.113.5', ['10.0.0.9']])
  })

  test(`${name} facts of a host: a replaced token changes nothing, nor does one of two agents with one identity`, async (t) => {
    const insides = await open(t)
    const { context } = insides
    const agent = await joined(insides)
    const told = { kernel: '6.12.0' }
    t.false(await takeFacts(context, { ...agent, tokenHash: 'former' }, told, () => true))
    t.false(await takeFacts(context, agent, told, () => false))
    context.presence.heartbeat(agent.hostId, { status: 'HEALTHY' })
    context.presence.duplicate(agent.hostId, true)
    t.false(await takeFacts(context, agent, told, () => true))
    context.presence.duplicate(agent.hostId, false)
    t.true(await takeFacts(context, agent, told, () => true))
  })
}
