import { keep, readKept } from '../kept.ts'
import { createStore } from '../store.ts'

const key = 'rsm.screen-reader'

/** Whether terminals tell screen readers what they show. */
export const readerMode = createStore(readKept(localStorage, key) === true)
readerMode.subscribe(() => keep(localStorage, key, readerMode.get()))
