import test from 'ava'
import { runOnClones } from '../../helpers/agents/clones.ts'

test('A01 two agents on copies of one directory, with alternating links, start none of 200 silent scripts twice', async (t) => {
  t.timeout(400_000)
  const { starts, statuses, links } = await runOnClones(t, 200)
  t.log({ statuses: Object.fromEntries(statuses), links })
  t.true(links > 40, 'both agents had the link in turns')
  t.deepEqual(
    [...starts].filter(([, times]) => times > 1),
    [],
  )
  t.true(starts.size > 100)
})
