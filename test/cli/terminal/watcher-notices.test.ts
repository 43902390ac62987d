import test from 'ava'
import { WatcherNotices } from '../../../src/cli/terminal/watcher-notices.ts'

test('watchers are announced when they change: at first, and after unseen changes', (t) => {
  const told = new WatcherNotices()
  t.is(told.attached([]), null)
  t.is(told.attached(['ann']), 'ann reads along')
  t.is(told.attached(['ann']), null)
  t.is(told.attached(['bob', 'ann']), 'ann, bob read along')
  t.is(told.attached(['ann', 'bob']), null)
  t.is(told.attached([]), 'no one is watching any more')
})

test('the next attachment after a notice about watchers announces the current state', (t) => {
  const told = new WatcherNotices()
  told.attached([])
  told.noticed('host-away')
  t.is(told.attached([]), null)
  told.noticed('watched')
  t.is(told.attached(['ann']), 'ann reads along')
  told.noticed('unwatched')
  t.is(told.attached([]), 'no one is watching any more')
})
