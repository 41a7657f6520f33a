const WITHOUT_EFFECT: Readonly<Record<string, string>> = {
  REDIS_URI: "there is no Redis",
  LANGGRAPH_CLOUD_LICENSE_KEY: "there is no license",
  BG_JOB_ISOLATED_LOOPS: "graphs run in processes of their own with --workers",
  LANGGRAPH_AES_LEGACY_KEY: "name the key in LANGGRAPH_AES_FALLBACK_KEYS",
};

export const environmentWarning = (
  environment: Readonly<Record<string, string | undefined>>,
): string | undefined => {
  const reasons = new Map<string, string[]>();
  for (const [name, reason] of Object.entries(WITHOUT_EFFECT)) {
    if ((environment[name] ?? "") !== "") reasons.set(reason, [...(reasons.get(reason) ?? []), name]);
  }
  if (reasons.size === 0) return undefined;
  const parts = [...reasons].map(([reason, names]) => `${names.join(", ")} (${reason})`);
  return `variables of the hosted server that have no effect here: ${parts.join(", ")}`;
};
