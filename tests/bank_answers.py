"""The right numbers of the teacher's questions of the core, found another way; see `test_site_quizzes`."""

MORE_RUN = {  # what the chapters keep that these questions quote, as a run might have it
    # the_claim
    # ---
    # differential_privacy
    # ---
    # hypothesis_testing
    # ---
    # renyi_accounting
    # ---
    # synthetic_records
    # ---
    # fine_tuning
    # ---
    # private_training
    # ---
    # extraction
    # ---
    # membership_inference
    # ---
    # auditing
    # ---
    # comparison
    # ---
    # hipaa
    # ---
}
MORE_TRUE = {
    # the_claim
    # ---
    # differential_privacy
    # ---
    # hypothesis_testing
    # ---
    # renyi_accounting
    # ---
    # synthetic_records
    # ---
    # fine_tuning
    # ---
    # private_training
    # ---
    # extraction
    # ---
    # membership_inference
    # ---
    # auditing
    # ---
    # comparison
    # ---
    # hipaa
    # ---
}
