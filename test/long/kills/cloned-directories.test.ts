import test from 'ava'
import { runOnClones } from '../../helpers/agents/clones.ts'

test('A01 two agents on copies of one directory, with alternating links, start no script twice', async (t) => {
  const { starts, statuses, links } = await runOnClones(t, 20)
  t.log({ statuses: Object.fromEntries(statuses), links })
  t.true(links > 4, 'both agents had the link in turns')
  t.deepEqual(
    [...starts].filter(([, times]) => times > 1),
    [],
  )
  t.true(starts.size > 10)
})
