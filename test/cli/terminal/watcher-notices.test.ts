import test from 'ava'
import { WatcherNotices } from '../../../src/cli/terminal/watcher-notices.ts'

test('who reads along is told whenever it is news: at first, and after what happened unseen', (t) => {
  const told = new WatcherNotices()
  t.is(told.attached([]), null)
  t.is(told.attached(['ann']), 'ann reads along')
  t.is(told.attached(['ann']), null)
  t.is(told.attached(['bob', 'ann']), 'ann, bob read along')
  t.is(told.attached(['ann', 'bob']), null)
  t.is(told.attached([]), 'no one is watching any more')
})

test('after a notice of it, the next attachment says how it stands', (t) => {
  const told = new WatcherNotices()
  told.attached([])
  told.noticed('host-away')
  t.is(told.attached([]), null)
  told.noticed('watched')
  t.is(told.attached(['ann']), 'ann reads along')
  told.noticed('unwatched')
  t.is(told.attached([]), 'no one is watching any more')
})
