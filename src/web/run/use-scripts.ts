import { useEffect, useRef, useState } from 'preact/hooks'
import type { Script, ScriptSummary } from '../../core/protocol/http/scripts.ts'
import { all, call } from '../api.ts'

type Fail = (error: unknown) => void

/** All stored scripts, without their texts; undefined until they are read. `fail` hears why they can't be. */
export function useScripts(fail: Fail = () => undefined): readonly ScriptSummary[] | undefined {
  const [scripts, setScripts] = useState<readonly ScriptSummary[] | undefined>()
  useEffect(() => {
    all<ScriptSummary>('api/scripts').then(setScripts, fail)
  }, [])
  return scripts
}

/** The same scripts: those with one of these ids get their texts and params as soon as they are read. */
export function useTexts(
  scripts: readonly ScriptSummary[],
  ids: readonly (number | null | undefined)[],
  fail: Fail = () => undefined,
): readonly ScriptSummary[] {
  const [whole, setWhole] = useState<readonly Script[]>([])
  const asked = useRef(new Set<number>())
  useEffect(() => {
    for (const { id } of scripts) {
      if (!ids.includes(id) || asked.current.has(id)) continue
      asked.current.add(id)
      call<Script>('GET', `api/scripts/${id}`).then((read) => setWhole((known) => [...known, read]), fail)
    }
  })
  return scripts.map((script) => whole.find(({ id }) => id === script.id) ?? script)
}
