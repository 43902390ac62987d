import { useEffect, useState } from 'preact/hooks'
import type { Script } from '../../core/protocol/http/scripts.ts'
import { all } from '../api.ts'

/** All stored scripts; undefined until they are read. `fail` hears why they can't be. */
export function useScripts(fail: (error: unknown) => void = () => undefined): readonly Script[] | undefined {
  const [scripts, setScripts] = useState<readonly Script[] | undefined>()
  useEffect(() => {
    all<Script>('api/scripts').then(setScripts, fail)
  }, [])
  return scripts
}
