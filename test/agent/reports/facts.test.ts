import test from 'ava'
import { diskSize, hostFacts } from '../../../src/agent/reports/facts.ts'

test('the disks of this host are counted by a process that ends', async (t) => {
  const size = await diskSize(100_000)
  t.true(Number.isInteger(size) && size > 0, `${size} GB`)
})

test('a registration tells what the host is, with the disks as they were counted', async (t) => {
  const facts = await hostFacts('agent-1', 'web1', async () => 42)
  t.like(facts, { agentId: 'agent-1', hostname: 'web1', os: 'linux', diskGB: 42 })
  t.false(facts.ipAddresses?.includes('127.0.0.1'))
})
