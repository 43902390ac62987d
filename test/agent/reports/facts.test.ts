import { readFileSync } from 'node:fs'
import test from 'ava'
import { systemClock } from '../../../src/agent/clock.ts'
import { diskSize, diskSizeHourly, hostFacts, systemFacts } from '../../../src/agent/reports/facts.ts'

test('a process that ends adds up the disks of this host', async (t) => {
  const size = await diskSize(100_000)
  t.true(Number.isInteger(size) && size > 0, `${size} GB`)
})

test('a registration describes the host, with the disk size as counted', async (t) => {
  const facts = await hostFacts('agent-1', 'web1', async () => 42)
  t.like(facts, { agentId: 'agent-1', hostname: 'web1', os: 'linux', diskGB: 42 })
  t.false(facts.ipAddresses?.includes('127.0.0.1'))
})

test('facts contain the distribution, and omit a disk size that could not be counted', async (t) => {
  const facts = await systemFacts(async () => 0)
  const named = /^PRETTY_NAME="(.*)"$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1]
  t.is(facts.distribution, named)
  t.false('diskGB' in facts)
})

test('disks are counted once an hour, however often the agent links', async (t) => {
  let [now, counts] = [5, 0]
  const size = diskSizeHourly({ ...systemClock, monotonic: () => now }, async () => ++counts)
  t.deepEqual([await size(), await size()], [1, 1])
  now += 3_600_000
  t.is(await size(), 2)
})
